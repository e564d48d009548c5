package screenshot

import (
	"image"
	"image/color"
	"image/draw"
	"math"

	"golang.org/x/image/vector"
)

// special draws the characters that must join with their neighbours or that the
// font lacks. It reports whether ch is one of them.
func (p *painter) special(r image.Rectangle, ch rune, fg color.Color) bool {
	fill := func(q image.Rectangle) { draw.Draw(p.img, q, image.NewUniform(fg), image.Point{}, draw.Over) }
	mx, my := (r.Min.X+r.Max.X)/2, (r.Min.Y+r.Max.Y)/2
	left := image.Rect(r.Min.X, my, mx+1, my+1)
	right := image.Rect(mx, my, r.Max.X, my+1)
	up := image.Rect(mx, r.Min.Y, mx+1, my+1)
	down := image.Rect(mx, my, mx+1, r.Max.Y)
	switch {
	case ch >= '▁' && ch <= '█':
		h := int(ch-'▁'+1) * (p.ch - 3) / 8
		fill(image.Rect(r.Min.X, r.Max.Y-1-max(h, 1), r.Max.X-1, r.Max.Y-1))
		return true
	}
	switch ch {
	case '─':
		fill(left)
		fill(right)
	case '│':
		fill(up)
		fill(down)
	case '┌':
		fill(right)
		fill(down)
	case '┐':
		fill(left)
		fill(down)
	case '└':
		fill(right)
		fill(up)
	case '┘':
		fill(left)
		fill(up)
	case '●':
		p.disc(r, fg, 0.36)
	case '◌':
		p.ring(r, fg)
	case '▼':
		p.polygon(r, fg, [][2]float32{{0.06, 0.34}, {0.94, 0.34}, {0.5, 0.78}})
	case '▲':
		p.polygon(r, fg, [][2]float32{{0.06, 0.74}, {0.94, 0.74}, {0.5, 0.30}})
	case '×':
		p.polygon(r, fg, [][2]float32{{0.08, 0.37}, {0.22, 0.30}, {0.5, 0.46}, {0.78, 0.30}, {0.92, 0.37}, {0.64, 0.54},
			{0.92, 0.71}, {0.78, 0.78}, {0.5, 0.62}, {0.22, 0.78}, {0.08, 0.71}, {0.36, 0.54}})
	case '→':
		p.polygon(r, fg, [][2]float32{{0.02, 0.52}, {0.6, 0.52}, {0.6, 0.38}, {0.98, 0.55}, {0.6, 0.72}, {0.6, 0.58}, {0.02, 0.58}})
	default:
		return false
	}
	return true
}

// polygon fills a shape given in parts of the cell.
func (p *painter) polygon(r image.Rectangle, fg color.Color, pts [][2]float32) {
	w, h := float32(r.Dx()), float32(r.Dy())
	z := vector.NewRasterizer(r.Dx(), r.Dy())
	for i, pt := range pts {
		if i == 0 {
			z.MoveTo(pt[0]*w, pt[1]*h)
		} else {
			z.LineTo(pt[0]*w, pt[1]*h)
		}
	}
	z.ClosePath()
	z.Draw(p.img, r, image.NewUniform(fg), image.Point{})
}

func circle(cx, cy, rad float64, n int) [][2]float64 {
	out := make([][2]float64, n)
	for i := range out {
		a := 2 * math.Pi * float64(i) / float64(n)
		out[i] = [2]float64{cx + rad*math.Cos(a), cy + rad*math.Sin(a)}
	}
	return out
}

// disc draws a filled circle in the middle of a cell, its radius in parts of the
// cell's width.
func (p *painter) disc(r image.Rectangle, fg color.Color, rad float64) {
	p.discAt(r, fg, float64(r.Dx())/2, float64(r.Dy())*0.54, float64(r.Dx())*rad)
}

func (p *painter) discAt(r image.Rectangle, fg color.Color, x, y, rad float64) {
	z := vector.NewRasterizer(r.Dx(), r.Dy())
	for i, c := range circle(x, y, rad, 32) {
		if i == 0 {
			z.MoveTo(float32(c[0]), float32(c[1]))
		} else {
			z.LineTo(float32(c[0]), float32(c[1]))
		}
	}
	z.ClosePath()
	z.Draw(p.img, r, image.NewUniform(fg), image.Point{})
}

// ring draws a dotted circle.
func (p *painter) ring(r image.Rectangle, fg color.Color) {
	for _, c := range circle(float64(r.Dx())/2, float64(r.Dy())*0.54, float64(r.Dx())*0.36, 8) {
		p.discAt(r, fg, c[0], c[1], float64(r.Dx())*0.09)
	}
}
