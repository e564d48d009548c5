package ui

import (
	"net/netip"

	"virdeck/model"
)

// Columns of the proxy table.
const (
	pName = iota
	pHost
	pState
	pAddress
	pLease
	pAgent
	pARP
	pProbe
	pRotation
	pReason
	pCols
)

const tablePrefix = 2 // cursor and mark

func addrLen(a netip.Addr) int { return len(a.String()) }

// columns returns the columns of the proxy table. Only widths depend on the
// rows, and only through the widest name and address in scope, so that nothing
// jumps while the window scrolls.
func (m *Model) columns() []col {
	name := min(max(m.nameW, 5), 28)
	addr := min(max(m.addrW, 7), 39)
	cols := []col{
		pName:     {"PROXY", min(name, 6), name, name, 99},
		pHost:     {},
		pState:    {"STATE", 12, 17, 22, 97},
		pAddress:  {"ADDRESS", min(addr, 9), min(addr, 15), addr, 98},
		pLease:    {"LEASE", 5, 7, 15, 40},
		pAgent:    {"AGENT", 9, 13, 15, 60},
		pARP:      {"ARP", 5, 9, 15, 45},
		pProbe:    {"PROBE", 7, 16, 22, 70},
		pRotation: {"ROTATION", 3, 11, 21, 80},
		pReason:   {"WHY", 12, 44, 200, 1},
	}
	if m.all {
		cols[pHost] = col{"HOST", 6, 8, 16, 85}
	}
	return cols
}

// tableWidths allots the columns for a window of w cells. HOST is there only
// when the rows are of several hosts, WHY only when there is room to read it.
func (m *Model) tableWidths(w int) (cols []col, widths []int, gap int) {
	gap = gapFor(w)
	cols = m.columns()
	use := make([]int, 0, pCols)
	for i := range cols {
		if (i == pHost && !m.all) || (i == pReason && w < 130) {
			continue
		}
		use = append(use, i)
	}
	short := make([]col, len(use))
	for i, c := range use {
		short[i] = cols[c]
	}
	widths = make([]int, len(cols))
	for i, n := range allot(short, w-tablePrefix, gap) {
		widths[use[i]] = n
	}
	return cols, widths, gap
}

func (m *Model) rowLine(i int, widths []int, gap int) line {
	r := m.rows[i]
	p := r.p
	cur, mark := " ", " "
	if i == m.table.at {
		cur = ">"
	}
	if _, on := m.marks[p.Spec.Name]; on {
		mark = "*"
	}
	prefix := line{{cur, stStrong}, {mark, stWarn}}
	if !r.gone.IsZero() {
		return append(prefix, seg{clean(string(p.Spec.Name)), stGone},
			seg{"  gone " + age(m.now, r.gone) + " ago", stDim})
	}
	return m.assemble(prefix, widths, gap, func(c, w int) line {
		switch c {
		case pName:
			st := stText
			if r.stray {
				st = stDim
			}
			return text(clean(string(p.Spec.Name)), st)
		case pHost:
			return text(clean(string(p.Spec.Host)), stDim)
		case pState:
			return m.stateCell(p, w)
		case pAddress:
			return m.addressCell(p, w)
		case pLease:
			return m.sourceCell(r, model.SourceLease, w)
		case pAgent:
			return m.sourceCell(r, model.SourceAgent, w)
		case pARP:
			return m.sourceCell(r, model.SourceARP, w)
		case pProbe:
			return m.probeCell(p, w)
		case pRotation:
			return m.rotationCell(p, w)
		}
		if p.Managed != nil && p.Managed.Write != "" {
			return text(reason(p), stBusy)
		}
		return text(reason(p), stDim)
	})
}
