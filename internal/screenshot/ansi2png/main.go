// Command ansi2png draws a terminal screen as a picture. It reads the screen as
// text with escape sequences from standard input, as `tmux capture-pane -e -p`
// writes it.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"image/png"
	"io"
	"os"

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
	in = bytes.ReplaceAll(bytes.TrimRight(in, "\n"), []byte("\n"), []byte("\r\n"))
	if _, err := em.Write(in); err != nil {
		return fmt.Errorf("screen: %w", err)
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
