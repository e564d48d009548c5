package libvirt

import (
	"context"
	"errors"
	"sync"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"

	"virdeck/model"
	"virdeck/provider"
)

// A mark is read once for each domain and link, and again when something tells
// that it may have changed. A listing reads so many unknown ones at most, and for
// so long; the rest stay unknown until a later one.
const (
	marksPerListing = 64
	marksTime       = time.Second
)

// marks keeps what the domains' metadata said. The zero value is ready for use.
type marks struct {
	mu sync.Mutex
	by map[string]*markEntry // by UUID
}

type markEntry struct {
	gen    uint64 // of the link that read it; 0: to be read
	turn   uint64 // counts what made it void, so that a reading under way is not taken for new
	owner  model.Owner
	broken string
}

// get returns what is known; gen is the link's present generation.
func (m *marks) get(uuid string, gen uint64) (e markEntry, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.by[uuid]; p != nil {
		return *p, p.gen == gen
	}
	return markEntry{}, false
}

// put keeps a reading, unless something made it void while it was under way.
func (m *marks) put(uuid string, began uint64, e markEntry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.by == nil {
		m.by = map[string]*markEntry{}
	}
	if p := m.by[uuid]; p != nil && p.turn != began {
		return
	}
	e.turn = began
	m.by[uuid] = &e
}

// forget makes the mark of a domain unknown.
func (m *marks) forget(uuid string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.by == nil {
		m.by = map[string]*markEntry{}
	}
	p := m.by[uuid]
	if p == nil {
		p = &markEntry{}
		m.by[uuid] = p
	}
	p.turn++
	p.gen = 0
}

// only drops all that is not listed.
func (m *marks) only(here map[string]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for u := range m.by {
		if !here[u] {
			delete(m.by, u)
		}
	}
}

// known fills in the owner as far as it has been read on this link.
func (h *Host) known(in *model.Instance) bool {
	e, ok := h.marks.get(in.UUID, in.Generation)
	if ok {
		in.Owner, in.OwnerKnown, in.OwnerNote = e.owner, true, e.broken
	}
	return ok
}

// readMarks fills in the owners of a listing. What cannot be read now is left
// unknown; it is no failure of the listing.
func (h *Host) readMarks(ctx context.Context, all []model.Instance, doms []golibvirt.Domain) {
	end := time.Now().Add(marksTime)
	budget := marksPerListing
	for i := range all {
		if h.known(&all[i]) || budget == 0 || time.Now().After(end) {
			continue
		}
		budget--
		if err := h.learnMark(ctx, &all[i], doms[i]); err != nil {
			budget = 0 // no slot, or no link: not now
		}
	}
}

// learnMark reads one mark; the error is that nothing was learned.
func (h *Host) learnMark(ctx context.Context, in *model.Instance, dom golibvirt.Domain) error {
	before, _ := h.marks.get(in.UUID, in.Generation)
	text, gen, err := do(ctx, h.link, call{Class: ClassRead, What: "read the mark", Domain: in.Name},
		func(v *golibvirt.Libvirt) (string, error) {
			return v.DomainGetMetadata(dom, elementMetadata, golibvirt.OptString{markURI}, 0)
		})
	e := markEntry{gen: gen}
	switch {
	case code(err) == codeNoMetadata:
	case code(err) == provider.CodeNoDomain:
		return nil // gone since; the next listing lacks it
	case errors.Is(err, provider.ErrUnsupported):
		return nil
	case err != nil && code(err) != 0:
		in.OwnerNote = err.Error()
		return nil // refused: unknown, and the next one may do
	case err != nil:
		return err
	default:
		o, perr := parseMark(text)
		if perr != nil {
			e.broken = "its mark cannot be read: " + perr.Error()
		} else {
			e.owner = o
		}
	}
	h.marks.put(in.UUID, before.turn, e)
	h.known(in)
	return nil
}
