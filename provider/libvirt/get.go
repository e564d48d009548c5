package libvirt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"

	"virdeck/model"
	"virdeck/provider"
)

// Get implements provider.Host. See judge for the rule.
func (h *Host) Get(ctx context.Context, req provider.GetRequest) (model.Instance, error) {
	notBefore := time.Now()
	if !req.Fresh {
		notBefore = notBefore.Add(-listingAge)
	}
	in, dom, err := h.find(ctx, req.Domain, notBefore)
	if err != nil {
		return in, h.domErr(req.Domain, err)
	}
	h.known(&in)
	if in.State != model.InstanceUnknown { // paused or stopped: nobody to ask
		return in, nil
	}
	in, err = h.address(ctx, in, dom, req)
	if errors.Is(err, errReread) {
		// A source says that the domain is gone or does not run. Do not guess
		// which: look again, once, and say what is true now.
		now, _, ferr := h.find(ctx, req.Domain, time.Now())
		now.Outcomes = in.Outcomes
		switch {
		case ferr != nil:
			return now, h.domErr(req.Domain, ferr)
		case now.State == model.InstanceUnknown:
			return now, h.domErr(req.Domain, fmt.Errorf("%w: it runs, and its source says otherwise: %w", provider.ErrTransient, err))
		}
		return now, nil
	}
	if err != nil {
		return in, h.domErr(req.Domain, err)
	}
	return in, nil
}

// errReread asks for another look at the state.
var errReread = errors.New("the domain has stopped or gone")

func (h *Host) domErr(domain string, err error) error {
	return h.readErr(fmt.Errorf("domain %s: %w", domain, err))
}

// find looks a domain up in a listing that began at or after notBefore. A
// domain that an older listing lacks is looked for in a new one before it is
// called missing.
func (h *Host) find(ctx context.Context, name string, notBefore time.Time) (model.Instance, golibvirt.Domain, error) {
	asked := time.Now()
	missing := model.Instance{Name: name, Domain: model.DomainMissing, At: asked}
	for _, from := range []time.Time{notBefore, asked} {
		lk, err := h.listing.get(ctx, from, h.look)
		if err != nil {
			return model.Instance{Name: name}, golibvirt.Domain{}, err
		}
		if i, ok := lk.by[name]; ok {
			return lk.all[i], lk.doms[i], nil
		}
		if missing.Generation = lk.gen; !lk.at.Before(asked) {
			break
		}
	}
	return missing, golibvirt.Domain{}, provider.ErrNotFound
}

// address asks the sources and fills in what they amount to.
func (h *Host) address(ctx context.Context, in model.Instance, dom golibvirt.Domain, req provider.GetRequest) (model.Instance, error) {
	info, err := h.info(ctx, in, dom)
	if err != nil {
		return in, reread(err)
	}
	h.setAgentTimeout(ctx, in, dom, info)
	answers := make([]answer, 0, len(model.Sources()))
	// The agent last: it is the one that may take long, and what the others
	// said should not be lost to it.
	for _, src := range []model.Source{model.SourceLease, model.SourceARP, model.SourceAgent} {
		a := h.ask(ctx, src, &in, dom, info, req.Sources)
		answers = append(answers, a)
		in.Outcomes = inOrder(answers)
		switch {
		case a.err == nil:
		case ctx.Err() != nil:
			return in, ctx.Err()
		case errors.Is(a.err, provider.ErrLinkDown):
			// Nothing more can be learned, and what the others said a moment
			// ago is not the whole truth: conclude nothing.
			return in, a.err
		case src != model.SourceLease && errors.Is(reread(a.err), errReread):
			// Not the lease's: its codes are about the network ("is not active").
			return in, reread(a.err)
		}
	}
	j, err := judge(answers, req.Hint, h.opts.Prefer)
	if err != nil {
		return in, err
	}
	in.State, in.Address, in.Won, in.Candidates = j.state, j.address, j.won, j.candidates
	return in, nil
}

// reread turns "no domain" and "domain is not running" into errReread.
func reread(err error) error {
	var ce *provider.CodedError
	if errors.As(err, &ce) && (ce.Code == provider.CodeNoDomain || ce.Code == provider.CodeOperationInvalid) {
		return fmt.Errorf("%w: %w", errReread, err)
	}
	return err
}

// inOrder returns the outcomes in display order.
func inOrder(answers []answer) []model.Outcome {
	out := make([]model.Outcome, 0, len(answers))
	for _, a := range answers {
		out = append(out, a.Outcome)
	}
	slices.SortFunc(out, func(a, b model.Outcome) int { return int(a.Source) - int(b.Source) })
	return out
}

// info returns the XML facts of a domain's incarnation, read at most once on
// each connection.
func (h *Host) info(ctx context.Context, in model.Instance, dom golibvirt.Domain) (domainInfo, error) {
	if i, ok := h.cached(&in); ok {
		return i, nil
	}
	text, _, err := do(ctx, h.link, call{Class: ClassRead, What: "read xml", Domain: in.Name},
		func(v *golibvirt.Libvirt) (string, error) { return v.DomainGetXMLDesc(dom, 0) })
	if err != nil {
		return domainInfo{}, fmt.Errorf("read xml: %w", err)
	}
	i, err := parseDomain(text)
	if err != nil {
		return domainInfo{}, err
	}
	h.mu.Lock()
	h.infos[in.UUID] = cachedInfo{gen: in.Generation, incarnation: in.Incarnation, info: i}
	h.mu.Unlock()
	return i, nil
}

// setAgentTimeout bounds libvirt's own wait for this guest's agent, once an
// incarnation and connection: the setting is the running domain's and goes with
// it, and that it still runs is known within one connection alone. It takes
// no job and works before the agent is up (qemu_driver.c). Its failure is not
// the read's: it is kept as a note, and the abandoned call's lock then keeps
// virdeck from asking a hung agent twice.
func (h *Host) setAgentTimeout(ctx context.Context, in model.Instance, dom golibvirt.Domain, info domainInfo) {
	if !info.agent || h.opts.AgentTimeout <= 0 {
		return
	}
	h.mu.Lock()
	c := h.infos[in.UUID]
	h.mu.Unlock()
	if c.timeoutSet || c.timeoutNote != "" {
		return
	}
	secs := int32((h.opts.AgentTimeout + time.Second - 1) / time.Second)
	_, _, err := do(ctx, h.link, call{Class: ClassRead, What: "set agent timeout", Domain: in.Name},
		func(v *golibvirt.Libvirt) (int32, error) { return v.DomainAgentSetResponseTimeout(dom, secs, 0) })
	h.mu.Lock()
	defer h.mu.Unlock()
	c, ok := h.infos[in.UUID]
	if !ok || c.gen != in.Generation || c.incarnation != in.Incarnation {
		return
	}
	var ce *provider.CodedError
	switch {
	case err == nil:
		c.timeoutSet = true
	case errors.As(err, &ce), errors.Is(err, provider.ErrUnsupported):
		c.timeoutNote = err.Error()
	default:
		return // not asked, or the link died: try again at the next read
	}
	h.infos[in.UUID] = c
}
