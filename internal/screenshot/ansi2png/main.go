// Command ansi2png draws a terminal screen as a picture. It reads the screen as
// text with escape sequences from standard input, as `tmux capture-pane -e -p`
// writes it.
package main

import (
	"flag"
	"fmt"
	"image/png"
	"io"
	"os"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"

	"virdeck/internal/screenshot"
)

func main() {
	w := flag.Int("w", 120, "columns")
	h := flag.Int("h", 36, "lines")
	light := flag.Bool("light", false, "light background")
	out := flag.String("o", "screen.png", "picture to write")
	flag.Parse()
	if err := run(*w, *h, *light, *out); err != nil {
		fmt.Fprintln(os.Stderr, "ansi2png:", err)
		os.Exit(1)
	}
}

func run(w, h int, light bool, out string) (err error) {
	in, err := io.ReadAll(os.Stdin)
	if err != nil {
		return fmt.Errorf("screen: %w", err)
	}
	em := vt.NewEmulator(w, h)
	for i, l := range strings.Split(strings.TrimRight(string(in), "\n"), "\n") {
		if i > 0 {
			l = "\r\n" + l
		}
		// tmux leaves out what was cleared to the end of a line, in whatever
		// colour: the colour in force there says in which.
		if ansi.StringWidth(l) < w {
			l += "\x1b[K"
		}
		if _, err := em.Write([]byte(l)); err != nil {
			return fmt.Errorf("screen: %w", err)
		}
	}
	look := screenshot.Dark()
	if light {
		look = screenshot.Light()
	}
	img, err := screenshot.Draw(em, look)
	if err != nil {
		return err
	}
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	return png.Encode(f, img)
}
