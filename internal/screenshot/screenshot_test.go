package screenshot

import (
	"image/color"
	"testing"

	"github.com/charmbracelet/x/vt"
)

// The picture has the screen's size, and its pixels the screen's colours: reverse
// and backgrounds included, which is what such pictures tend to get wrong.
func TestDraw(t *testing.T) {
	em := vt.NewEmulator(10, 3)
	if _, err := em.Write([]byte("\x1b[48;2;10;20;30m \x1b[m\x1b[7m \x1b[m\x1b[38;2;200;0;0m█\x1b[m x\r\n●◌▼▲×→─│┌┐")); err != nil {
		t.Fatal(err)
	}
	look := Dark()
	img, err := Draw(em, look)
	if err != nil {
		t.Fatal(err)
	}
	cw := (img.Bounds().Dx() - 2*look.Margin) / 10
	ch := (img.Bounds().Dy() - 2*look.Margin) / 3
	at := func(x, y int) color.RGBA {
		r, g, b, _ := img.At(look.Margin+x*cw+cw/2, look.Margin+y*ch+ch-3).RGBA()
		return color.RGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), 0xff}
	}
	for x, want := range map[int]color.Color{
		0: color.RGBA{10, 20, 30, 255}, 1: look.Foreground, 2: color.RGBA{200, 0, 0, 255}, 9: look.Background,
	} {
		if got := at(x, 0); got != want {
			t.Errorf("cell %d is %v, want %v", x, got, want)
		}
	}
	for x := range 10 {
		if !inked(img.At, look.Margin+x*cw, look.Margin+ch, cw, ch, look.Background) {
			t.Errorf("sign %d in the second line draws nothing", x)
		}
	}
}

func inked(at func(x, y int) color.Color, x0, y0, w, h int, bg color.Color) bool {
	for y := range h {
		for x := range w {
			if at(x0+x, y0+y) != bg {
				return true
			}
		}
	}
	return false
}
