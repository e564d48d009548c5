package ui

import (
	"time"

	"virdeck/model"
)

// managed makes a proxy one whose VM is virdeck's own.
func managed(p *model.ProxyView) *model.ManagedView {
	name := p.Spec.Name
	p.Spec.Backing, p.Spec.Pool, p.Spec.Domain = model.BackingManaged, "web", "home-"+string(name)+"-4f1d"
	p.Managed = &model.ManagedView{
		UID: "0b6e4f1d-" + string(name), Domain: p.Spec.Domain, Template: "debian-small", SpecHash: "5be41c07d2aa", BuiltHash: "5be41c07d2aa",
		Wish: "run", Built: true, CreatedAt: ago(75 * time.Hour),
		Owner: model.Owner{Fleet: "home", Proxy: name, UID: "0b6e4f1d-" + string(name), Controller: "c-77aa10", SpecHash: "5be41c07d2aa",
			Pool: "web", Phase: model.PhaseReady, CreatedAt: ago(75 * time.Hour)},
	}
	return p.Managed
}

// managedFleet is the crafted fleet with a pool whose members are in every phase
// of their lives, with orphans, a plan, and a configuration that has changed.
func managedFleet() *model.Snapshot {
	s := fleet()
	local := s.Hosts[2]
	local.Name, local.Undeclared, local.Domains = "kvm3", []string{"build-vm", "home-web-9-77b0"}, 6
	local.Budget = model.BudgetView{Used: 5, Of: 5, Window: time.Hour, Next: clock().Add(12 * time.Minute)}
	local.Orphans = []model.OrphanView{{Domain: "home-web-9-77b0", Owner: model.Owner{Fleet: "home", Proxy: "web-9", UID: "77b0", Phase: model.PhaseReady},
		First: ago(3 * time.Minute), Wait: "removed in 7m0s, after the grace for orphans"}}
	for i, p := range local.Proxies {
		p.Spec.Name, p.Spec.Host = model.ProxyName("web-"+string(rune('1'+i))), "kvm3"
		managed(p)
	}
	make4 := proxy("web-4", "kvm3", model.StatePending, "")
	v := managed(make4)
	v.Built, v.BuiltHash, v.Owner, v.CreatedAt = false, "", model.Owner{}, ago(15*time.Second)
	v.Write, v.WriteFrom, v.Step = "create", ago(15*time.Second), model.Progress{Step: "upload base image", Done: 120_400_000, Total: 280_000_000}
	make4.Reason, make4.Since, make4.Domain = "create: upload base image", ago(15*time.Second), model.DomainUnknown
	fail5 := proxy("web-5", "kvm3", model.StateFailed, "")
	v = managed(fail5)
	v.Built, v.BuiltHash, v.Owner, v.Latched, v.Fails = false, "", model.Owner{}, true, 1
	v.LastError = "host kvm3: define domain home-web-5-4f1d: unsupported configuration: machine type 'pc-q35-99' is not supported by the host"
	v.Plan = "it is declared and does not exist; failed, until its spec changes or an operator reconciles it: " + v.LastError
	fail5.Reason, fail5.Since, fail5.Domain = v.LastError, ago(4*time.Minute), model.DomainMissing
	fail5.Events = []model.Event{{Seq: 11, At: ago(4 * time.Minute), Proxy: "web-5", Host: "kvm3", From: "pending", To: "failed", What: "create failed for good", Evidence: []string{v.LastError}}}
	local.Proxies[1].Managed.BuiltHash, local.Proxies[1].Managed.Owner.SpecHash = "11aa22bb33cc", "11aa22bb33cc"
	local.Proxies = append(local.Proxies, make4, fail5)
	s.Pools = []model.PoolView{
		{Name: "web", Template: "debian-small", Count: 5, Members: 5, In: 3, Placement: map[model.HostName]int{"kvm3": 5},
			Budget: model.BudgetView{Used: 5, Of: 5, Window: time.Hour, Next: clock().Add(12 * time.Minute)},
			Wait:   []string{"web-2: is replaced when web-4 is in the rotation"}},
		{Name: "api", Template: "debian-large", Count: 2, Placement: map[model.HostName]int{"beelink": 1, "kvm2": 1}, Members: 2, In: 2,
			Budget: model.BudgetView{Used: 0, Of: 4, Window: 90 * time.Minute}}}
	s.Plan = []model.PlanItem{
		{Host: "kvm3", Proxy: "web-4", Domain: make4.Spec.Domain, Verb: model.PlanCreate, Why: "it is declared and does not exist", Since: ago(15 * time.Second), Step: make4.Managed.Step},
		{Host: "kvm3", Proxy: "web-3", Domain: "home-web-3-4f1d", Verb: model.PlanStart, Why: "its domain does not run", Counted: true},
		{Host: "kvm3", Proxy: "web-2", Domain: "home-web-2-4f1d", Verb: model.PlanReplace, Why: "its template has changed", Wait: "the budget of pool web is used up: 5 of 5 in 1h0m0s, the next in 12m0s", Counted: true},
		{Host: "kvm3", Proxy: "web-5", Domain: fail5.Spec.Domain, Verb: model.PlanCreate, Why: "it is declared and does not exist", Wait: "failed, until its spec changes or an operator reconciles it"},
		{Host: "kvm3", Domain: "home-web-9-77b0", Verb: model.PlanOrphan, Why: "its mark is ours, and no proxy has its uid", Wait: "removed in 7m0s, after the grace for orphans", Counted: true},
	}
	s.Notices = []model.Notice{{Level: model.NoticeWarn, Since: ago(time.Minute), Reload: true, Text: "the configuration file has changed and is not applied",
		Plan: []string{"pool web: count 5 -> 6: 1 member more", "proxy p-09: added: domain p-09 on host beelink is observed"}}}
	s.Ops = []model.Op{
		{ID: 3, Command: model.Command{Verb: model.VerbRecreate, Host: "kvm3", Proxy: "web-2", By: "bob"}, State: model.OpQueued, Created: ago(9 * time.Second)}}
	return s
}
