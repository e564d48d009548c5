package libvirt

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"

	"virdeck/model"
	"virdeck/provider"
)

// agentAge is how old an agent's answer may be: only so old that two proxies in
// one VM, read at one time, ask once.
const agentAge = 100 * time.Millisecond

// agentSlack is how long after libvirt's own limit an agent call is given up.
// Without such a limit, agentPatience is all that it gets.
const (
	agentSlack    = time.Second
	agentPatience = 4 * time.Second
)

// agentTry is one call to an agent.
type agentTry struct {
	guest    model.Instance
	asked    time.Time
	answered atomic.Bool // the daemon has answered, if too late
	bounded  bool        // libvirt has been told how long to wait
}

func (h *Host) askAgent(ctx context.Context, in *model.Instance, dom golibvirt.Domain, info domainInfo) answer {
	if !info.agent {
		return answer{Outcome: model.Outcome{Kind: model.OutcomeNotApplicable, Message: "the domain has no guest agent channel"}}
	}
	now := time.Now()
	if err := h.mayAsk(in, now); err != nil {
		return failed(err)
	}
	h.mu.Lock()
	a := h.agents[in.UUID]
	if a == nil {
		a = &agentCall{}
		h.agents[in.UUID] = a
	}
	try := &agentTry{guest: *in, asked: now, bounded: h.infos[in.UUID].timeoutSet}
	h.mu.Unlock()
	ifs, err := a.get(ctx, now.Add(-agentAge), func() ([]golibvirt.DomainInterface, error) { return h.callAgent(dom, try) })
	return fromInterfaces(ifs, err, info)
}

// callAgent asks and, where no answer comes, finds out whose silence it is. That
// the agent hangs is believed only if the host has answered another question,
// put to it meanwhile on the same connection. If it has not, the daemon or the
// way to it stands still, and the guest may be well: then it counts as not asked.
func (h *Host) callAgent(dom golibvirt.Domain, try *agentTry) ([]golibvirt.DomainInterface, error) {
	patience := agentPatience
	if h.opts.AgentTimeout > 0 {
		patience = h.opts.AgentTimeout + agentSlack
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := h.link.session(ctx)
	if err != nil {
		return nil, limited(err, patience)
	}
	var well atomic.Bool // the host
	witness := time.AfterFunc(patience/2, func() {
		lk, err := h.listing.get(ctx, try.asked, h.look)
		well.Store(err == nil && lk.gen == s.gen)
	})
	defer witness.Stop()
	ifs, err := onSession(ctx, h.link, s, call{Class: ClassAgent, What: "agent addresses", Domain: dom.Name},
		func(v *golibvirt.Libvirt) ([]golibvirt.DomainInterface, error) {
			ifs, err := v.DomainInterfaceAddresses(dom, ifaceAgent, 0)
			if le := (golibvirt.Error{}); err == nil || errors.As(err, &le) && le.Code != provider.CodeOperationTimeout {
				h.agentAnswers(try, err) // 68: a call before this one still waits for the agent
			}
			return ifs, err
		})
	switch {
	case !errors.Is(err, context.DeadlineExceeded):
		return ifs, err
	case !well.Load():
		return nil, fmt.Errorf("%w: no answer within %s, and the host gave none to another question either", provider.ErrNotAsked, patience)
	}
	h.agentHangs(try, time.Now())
	return nil, provider.Transient(fmt.Sprintf("the agent gave no answer within %s; libvirt still waits for it", patience), nil)
}
