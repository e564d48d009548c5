package libvirt

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"

	"virdeck/model"
	"virdeck/provider"
)

// looked is one bulk look, indexed.
type looked struct {
	gen  uint64
	at   time.Time
	all  []model.Instance
	doms []golibvirt.Domain // parallel to all
	by   map[string]int     // index by name
}

// List implements provider.Host: one call for all states, and one for the
// leases of each network on which a domain that has been asked for lives; and one
// for each mark that is not known yet, a bounded number of them.
func (h *Host) List(ctx context.Context) (provider.Listing, error) {
	now := time.Now()
	lk, err := h.listing.get(ctx, now, h.look)
	if err != nil {
		return provider.Listing{}, h.readErr(err)
	}
	out := provider.Listing{Generation: lk.gen, At: lk.at, Instances: make([]model.Instance, len(lk.all))}
	copy(out.Instances, lk.all)
	h.readMarks(ctx, out.Instances, lk.doms)
	h.listLeases(ctx, out.Instances, now)
	h.mu.Lock()
	if out.ARPBroken = h.arpBroken; h.uuidGen == lk.gen {
		out.HostUUID = h.uuid
	}
	h.mu.Unlock()
	return out, nil
}

// listLeases fills in the leases of the domains whose networks are known,
// asking each network once.
func (h *Host) listLeases(ctx context.Context, all []model.Instance, now time.Time) {
	infos := make([]domainInfo, len(all))
	var names []string
	for i := range all {
		info, ok := h.cached(&all[i])
		if !ok || all[i].State == model.InstanceStopped {
			continue
		}
		infos[i] = info
		for _, n := range info.networks() {
			if !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	if len(names) == 0 {
		return
	}
	start := time.Now()
	tables := h.tables(ctx, names, now, leaseShareList)
	at := time.Now()
	for i := range all {
		if a := fromLeases(infos[i], tables); a.Kind != model.OutcomeNotApplicable {
			a.Source, a.At, a.Took = model.SourceLease, at, at.Sub(start)
			all[i].Outcomes = []model.Outcome{a.Outcome}
		}
	}
}

// cached returns the XML facts of an instance if they are of its incarnation,
// and were read on the connection on which it was seen: after a gap an equal
// incarnation is no proof, since a host that was booted counts from 1 again.
func (h *Host) cached(in *model.Instance) (domainInfo, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c, ok := h.infos[in.UUID]
	return c.info, ok && c.gen == in.Generation && c.incarnation == in.Incarnation
}

// statsState asks for the state group alone: the one that takes no job, so a
// stuck VM cannot hold it up (VIR_DOMAIN_STATS_STATE).
const statsState = 1

func (h *Host) look() (looked, error) {
	ctx, cancel := readCtx()
	defer cancel()
	at := time.Now()
	recs, gen, err := do(ctx, h.link, call{Class: ClassRead, What: "list domains"},
		func(v *golibvirt.Libvirt) ([]golibvirt.DomainStatsRecord, error) {
			return v.ConnectGetAllDomainStats(nil, statsState, 0)
		})
	if err != nil {
		return looked{}, fmt.Errorf("list domains: %w", limited(err, readLimit))
	}
	lk := looked{gen: gen, at: at, by: make(map[string]int, len(recs))}
	for _, r := range recs {
		in := model.Instance{Name: r.Dom.Name, UUID: formatUUID(r.Dom.UUID), Generation: gen, At: at}
		state, reason := int32(-1), int32(0)
		for _, p := range r.Params {
			v, ok := p.Value.I.(int32)
			if !ok {
				continue
			}
			switch p.Field {
			case "state.state":
				state = v
			case "state.reason":
				reason = v
			}
		}
		in.Domain, in.State = domainState(state)
		in.Reason = stateReason(golibvirt.DomainState(state), reason)
		if in.State != model.InstanceStopped && r.Dom.ID >= 0 {
			in.Incarnation = incarnation(in.UUID, r.Dom.ID)
		}
		lk.by[in.Name] = len(lk.all)
		lk.all = append(lk.all, in)
		lk.doms = append(lk.doms, r.Dom)
	}
	h.forgetGone(lk)
	return lk, nil
}

// forgetGone drops what was kept of domains that are no longer listed, so that
// a host with a high turnover does not grow the process, and of runs that are
// over: a domain that was seen off may come back with other cards, and with the
// number of a run before it.
func (h *Host) forgetGone(lk looked) {
	here := make(map[string]bool, len(lk.all))
	run := make(map[string]model.Incarnation, len(lk.all)) // of those that run
	for _, in := range lk.all {
		here[in.UUID] = true
		if in.State != model.InstanceStopped {
			run[in.UUID] = in.Incarnation
		}
	}
	h.marks.only(here)
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.infos, func(u string, c cachedInfo) bool { return run[u] != c.incarnation })
	maps.DeleteFunc(h.hung, func(u string, q quarantine) bool { return run[u] != q.incarnation })
	maps.DeleteFunc(h.agents, func(u string, _ *agentCall) bool { return !here[u] })
}

func formatUUID(u golibvirt.UUID) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[0:4], u[4:6], u[6:8], u[8:10], u[10:16])
}

// incarnation joins what changes at each start (the ID) with what does not (the
// UUID), so that equal IDs of two domains are never equal incarnations. It does
// not tell one boot of the host from the next: libvirt names nothing that changes
// with it (no boot ID, no start time; a domain's processor time only grows within
// a run, but may be larger in the next one), so whoever compares two of different
// generations has to look again.
func incarnation(uuid string, id int32) model.Incarnation {
	return model.Incarnation(uuid[:8] + "/" + strconv.Itoa(int(id)))
}

// domainState maps libvirt's state. A domain in shutdown still runs, one in
// suspend-to-memory does not answer but is not gone.
func domainState(s int32) (model.DomainState, model.InstanceState) {
	switch golibvirt.DomainState(s) {
	case golibvirt.DomainRunning, golibvirt.DomainBlocked, golibvirt.DomainShutdown:
		return model.DomainRunning, model.InstanceUnknown
	case golibvirt.DomainPaused, golibvirt.DomainPmsuspended:
		return model.DomainPaused, model.InstancePaused
	case golibvirt.DomainShutoff:
		return model.DomainShutoff, model.InstanceStopped
	case golibvirt.DomainCrashed:
		return model.DomainCrashed, model.InstanceStopped
	case golibvirt.DomainNostate:
		return model.DomainUnknown, model.InstanceUnknown
	}
	return model.DomainUnknown, model.InstanceUnknown
}

// stateReason puts the reasons that an operator acts upon into words.
func stateReason(s golibvirt.DomainState, r int32) string {
	switch s {
	case golibvirt.DomainPaused:
		return map[golibvirt.DomainPausedReason]string{
			golibvirt.DomainPausedUser: "by a user", golibvirt.DomainPausedMigration: "migration",
			golibvirt.DomainPausedSave: "being saved", golibvirt.DomainPausedDump: "being dumped",
			golibvirt.DomainPausedIoerror: "I/O error", golibvirt.DomainPausedWatchdog: "watchdog",
			golibvirt.DomainPausedFromSnapshot: "restored from a snapshot", golibvirt.DomainPausedShuttingDown: "shutting down",
			golibvirt.DomainPausedSnapshot: "snapshot", golibvirt.DomainPausedCrashed: "guest crashed",
			golibvirt.DomainPausedStartingUp: "starting up", golibvirt.DomainPausedPostcopy: "post-copy migration",
			golibvirt.DomainPausedPostcopyFailed: "post-copy migration failed", golibvirt.DomainPausedAPIError: "API error",
		}[golibvirt.DomainPausedReason(r)]
	case golibvirt.DomainShutoff:
		return map[golibvirt.DomainShutoffReason]string{
			golibvirt.DomainShutoffShutdown: "shut down", golibvirt.DomainShutoffDestroyed: "destroyed",
			golibvirt.DomainShutoffCrashed: "crashed", golibvirt.DomainShutoffMigrated: "migrated away",
			golibvirt.DomainShutoffSaved: "saved", golibvirt.DomainShutoffFailed: "failed to start",
		}[golibvirt.DomainShutoffReason(r)]
	case golibvirt.DomainCrashed:
		return "guest panicked"
	case golibvirt.DomainShutdown:
		return "shutting down"
	case golibvirt.DomainPmsuspended:
		return "suspended by the guest"
	case golibvirt.DomainNostate, golibvirt.DomainRunning, golibvirt.DomainBlocked:
	}
	return ""
}
