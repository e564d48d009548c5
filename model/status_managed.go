package model

import "time"

// ManagedStatus is what belongs to a managed proxy alone: its VM, and what is
// done to it.
type ManagedStatus struct {
	UID       string       `json:"uid"` // of the VM: another VM for the same name has another one
	Domain    string       `json:"domain,omitempty"`
	Template  string       `json:"template,omitempty"`   // none for a VM that virdeck did not make
	SpecHash  string       `json:"spec_hash,omitempty"`  // wanted
	BuiltHash string       `json:"built_hash,omitempty"` // of the VM that is there, by its mark
	Mark      *MarkStatus  `json:"mark,omitempty"`       // none while none has been read
	Wish      string       `json:"wish"`                 // run, stop, gone
	Built     bool         `json:"built"`                // was complete once
	Write     *WriteStatus `json:"write,omitempty"`      // none while none is under way
	LastError string       `json:"last_error,omitempty"` // of the last write, in the host's words
	Latched   bool         `json:"latched"`              // not tried again before the spec changes or an operator asks
	Fails     int          `json:"fails"`                // writes that failed in a row
	RetryAt   *time.Time   `json:"retry_at,omitempty"`
	Plan      string       `json:"plan,omitempty"` // what is wanted and why, or why not now
	CreatedAt *time.Time   `json:"created_at,omitempty"`
}

// MarkStatus is the mark of a domain: whose it is.
type MarkStatus struct {
	Fleet      string     `json:"fleet"`
	Proxy      string     `json:"proxy"`
	UID        string     `json:"uid"`
	Controller string     `json:"controller"`
	SpecHash   string     `json:"spec_hash,omitempty"`
	Pool       string     `json:"pool,omitempty"`
	Phase      string     `json:"phase"` // new, ready, deleting
	CreatedAt  *time.Time `json:"created_at,omitempty"`
}

// WriteStatus is a write to a host that is under way.
type WriteStatus struct {
	Verb string `json:"verb"` // create, start, delete
	StepStatus
}

// StepStatus is how far a write has come.
type StepStatus struct {
	Since      *time.Time `json:"since,omitempty"` // when the write was begun
	Step       string     `json:"step,omitempty"`
	DoneBytes  int64      `json:"done_bytes,omitempty"`
	TotalBytes int64      `json:"total_bytes,omitempty"` // none where a step is not counted
}

// PoolStatus is a pool of managed proxies.
type PoolStatus struct {
	Name       string         `json:"name"`
	Template   string         `json:"template"`
	Declared   int            `json:"declared"`
	Members    int            `json:"members"` // present, those on their way out included
	InRotation int            `json:"in_rotation"`
	Wait       []string       `json:"wait"` // why something wanted is not done yet
	Budget     BudgetStatus   `json:"budget"`
	Placement  map[string]int `json:"placement"` // members by host
}

// BudgetStatus is a replacement budget.
type BudgetStatus struct {
	Used     int        `json:"used"`
	Of       int        `json:"of"`
	WindowMS float64    `json:"window_ms"`
	Next     *time.Time `json:"next,omitempty"` // when the next one comes free; none if one is
}

// PlanStatus is one thing that is wanted and not yet so.
type PlanStatus struct {
	Host    string      `json:"host"`
	Proxy   string      `json:"proxy,omitempty"` // none for domains that no proxy declares
	Domain  string      `json:"domain,omitempty"`
	Verb    string      `json:"verb"` // create, start, replace, delete, drain, remove orphan, wait
	Why     string      `json:"why,omitempty"`
	Wait    string      `json:"wait,omitempty"`  // why it is not done yet
	Write   *StepStatus `json:"write,omitempty"` // none before it is begun
	DryRun  bool        `json:"dry_run,omitempty"`
	Counted bool        `json:"counted"` // against the replacement budget
}

// OrphanStatus is a domain with our mark that no proxy owns.
type OrphanStatus struct {
	Domain string      `json:"domain"`
	Proxy  string      `json:"proxy"` // that it was made for
	Mark   *MarkStatus `json:"mark,omitempty"`
	Since  *time.Time  `json:"since,omitempty"` // when it was found so
	Wait   string      `json:"wait,omitempty"`  // why it is still there
}

func managedStatus(v *ManagedView) *ManagedStatus {
	if v == nil {
		return nil
	}
	out := &ManagedStatus{
		UID: v.UID, Domain: v.Domain, Template: v.Template, SpecHash: v.SpecHash, BuiltHash: v.BuiltHash,
		Mark: markStatus(v.Owner), Wish: v.Wish, Built: v.Built, LastError: v.LastError, Latched: v.Latched,
		Fails: v.Fails, RetryAt: timePtr(v.RetryAt), Plan: v.Plan, CreatedAt: timePtr(v.CreatedAt),
	}
	if v.Write != "" {
		out.Write = &WriteStatus{Verb: v.Write, StepStatus: stepStatus(v.Step, v.WriteFrom)}
	}
	return out
}

func markStatus(o Owner) *MarkStatus {
	if o.Zero() {
		return nil
	}
	return &MarkStatus{
		Fleet: o.Fleet, Proxy: string(o.Proxy), UID: o.UID, Controller: o.Controller, SpecHash: o.SpecHash,
		Pool: o.Pool, Phase: string(o.Phase), CreatedAt: timePtr(o.CreatedAt),
	}
}

func stepStatus(p Progress, since time.Time) StepStatus {
	return StepStatus{Since: timePtr(since), Step: p.Step, DoneBytes: p.Done, TotalBytes: p.Total}
}

func poolStatus(p PoolView) PoolStatus {
	out := PoolStatus{
		Name: p.Name, Template: p.Template, Declared: p.Count, Members: p.Members, InRotation: p.In,
		Wait: append([]string{}, p.Wait...), Budget: budgetStatus(p.Budget), Placement: map[string]int{},
	}
	for h, n := range p.Placement {
		out.Placement[string(h)] = n
	}
	return out
}

func budgetStatus(b BudgetView) BudgetStatus {
	return BudgetStatus{Used: b.Used, Of: b.Of, WindowMS: ms(b.Window), Next: timePtr(b.Next)}
}

func planStatus(it PlanItem) PlanStatus {
	out := PlanStatus{
		Host: string(it.Host), Proxy: string(it.Proxy), Domain: it.Domain, Verb: string(it.Verb),
		Why: it.Why, Wait: it.Wait, DryRun: it.Dry, Counted: it.Counted,
	}
	if !it.Since.IsZero() {
		st := stepStatus(it.Step, it.Since)
		out.Write = &st
	}
	return out
}
