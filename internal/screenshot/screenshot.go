// Package screenshot draws what a terminal shows as a picture: for the
// documentation, and for looking at a screen that a test made. It reads a
// terminal emulator's cells, with colours and attributes, and draws them with Go
// Mono; the line, block and sign characters are drawn by hand, so that cells join
// without seams. It does no I/O and is used by one goroutine at a time.
package screenshot

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"unicode/utf8"

	uv "github.com/charmbracelet/ultraviolet"
	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gomono"
	"golang.org/x/image/font/gofont/gomonobold"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
)

// Screen is what is drawn: vt.Emulator has these methods.
type Screen interface {
	Width() int
	Height() int
	CellAt(x, y int) *uv.Cell
}

// Look is how the picture looks apart from the screen's own colours.
type Look struct {
	Size       float64 // of the font, in points at 96 dots per inch
	Foreground color.Color
	Background color.Color
	Margin     int // pixels around
}

// Dark is a look for screens made for a dark terminal.
func Dark() Look {
	return Look{13, color.RGBA{0xd7, 0xde, 0xe8, 0xff}, color.RGBA{0x12, 0x15, 0x1c, 0xff}, 12}
}

// Light is a look for screens made for a light terminal.
func Light() Look {
	return Look{13, color.RGBA{0x1c, 0x22, 0x2c, 0xff}, color.RGBA{0xfb, 0xfb, 0xf8, 0xff}, 12}
}

// Draw returns the picture of a screen.
func Draw(s Screen, look Look) (image.Image, error) {
	reg, glyphs, err := face(gomono.TTF, look.Size)
	if err != nil {
		return nil, err
	}
	bold, _, err := face(gomonobold.TTF, look.Size)
	if err != nil {
		return nil, err
	}
	adv, _ := reg.GlyphAdvance('M')
	met := reg.Metrics()
	p := &painter{cw: adv.Round(), ch: (met.Ascent + met.Descent).Ceil() + 2, ascent: met.Ascent.Ceil() + 1,
		reg: reg, bold: bold, has: glyphs, look: look}
	w, h := s.Width(), s.Height()
	p.img = image.NewRGBA(image.Rect(0, 0, w*p.cw+2*look.Margin, h*p.ch+2*look.Margin))
	draw.Draw(p.img, p.img.Bounds(), image.NewUniform(look.Background), image.Point{}, draw.Src)
	for y := range h {
		for x := range w {
			if c := s.CellAt(x, y); c != nil {
				p.cell(x, y, c)
			}
		}
	}
	return p.img, nil
}

func face(ttf []byte, size float64) (font.Face, *sfnt.Font, error) {
	f, err := opentype.Parse(ttf)
	if err != nil {
		return nil, nil, fmt.Errorf("font: %w", err)
	}
	fc, err := opentype.NewFace(f, &opentype.FaceOptions{Size: size, DPI: 96, Hinting: font.HintingFull})
	if err != nil {
		return nil, nil, fmt.Errorf("font face: %w", err)
	}
	return fc, f, nil
}

type painter struct {
	img            *image.RGBA
	cw, ch, ascent int
	reg, bold      font.Face
	has            *sfnt.Font
	buf            sfnt.Buffer
	look           Look
}

func (p *painter) cell(x, y int, c *uv.Cell) {
	fg, bg := p.look.Foreground, p.look.Background
	if c.Style.Fg != nil {
		fg = c.Style.Fg
	}
	if c.Style.Bg != nil {
		bg = c.Style.Bg
	}
	if c.Style.Attrs&uv.AttrReverse != 0 {
		fg, bg = bg, fg
	}
	if c.Style.Attrs&uv.AttrFaint != 0 {
		fg = mix(fg, bg)
	}
	px, py := p.look.Margin+x*p.cw, p.look.Margin+y*p.ch
	r := image.Rect(px, py, px+max(c.Width, 1)*p.cw, py+p.ch)
	if bg != p.look.Background {
		draw.Draw(p.img, r, image.NewUniform(bg), image.Point{}, draw.Src)
	}
	// One character a cell: marks that combine are beyond this font.
	ch, _ := utf8.DecodeRuneInString(c.Content)
	if c.Content != "" && ch != ' ' && !p.special(r, ch, fg) {
		p.glyph(r, ch, fg, c.Style.Attrs&uv.AttrBold != 0)
	}
	if c.Style.Attrs&uv.AttrStrikethrough != 0 {
		mid := py + p.ch/2
		draw.Draw(p.img, image.Rect(r.Min.X, mid, r.Max.X, mid+1), image.NewUniform(fg), image.Point{}, draw.Over)
	}
}

func (p *painter) glyph(r image.Rectangle, ch rune, fg color.Color, bold bool) {
	if i, err := p.has.GlyphIndex(&p.buf, ch); err != nil || i == 0 {
		ch = '\ufffd'
	}
	fc := p.reg
	if bold {
		fc = p.bold
	}
	d := font.Drawer{Dst: p.img, Src: image.NewUniform(fg), Face: fc, Dot: fixed.P(r.Min.X, r.Min.Y+p.ascent)}
	d.DrawString(string(ch))
}

func mix(a, b color.Color) color.Color {
	ar, ag, ab, _ := a.RGBA()
	br, bg, bb, _ := b.RGBA()
	half := func(x, y uint32) uint8 { return uint8((x*6 + y*4) / 10 >> 8) }
	return color.RGBA{half(ar, br), half(ag, bg), half(ab, bb), 0xff}
}
