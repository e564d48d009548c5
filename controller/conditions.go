package controller

import (
	"fmt"
	"time"

	"virdeck/model"
)

// conditions derives the conditions of a proxy, keeping the times of those that
// did not change.
func conditions(p *proxy, hl model.Health, readErr string, now time.Time) []model.Condition {
	conds := p.conds
	set := func(t model.ConditionType, s model.ConditionStatus, reason, msg string) {
		conds = model.SetCondition(conds, model.Condition{Type: t, Status: s, Reason: reason, Message: msg, Since: now})
	}
	st := p.st
	switch {
	case p.spec.Backing == model.BackingExternal:
		set(model.CondProvisioned, model.CondTrue, "External", "no VM is expected")
		set(model.CondAddressKnown, model.CondTrue, "Fixed", p.spec.Address.String())
	case st.hold.Active:
		msg := fmt.Sprintf("held, poll %d of %d", st.hold.Polls, st.hold.Of)
		set(model.CondProvisioned, model.CondTrue, "AddressHeld", msg)
		set(model.CondAddressKnown, model.CondTrue, "AddressHeld", msg)
	case st.ip.IsValid():
		set(model.CondProvisioned, model.CondTrue, "AddressConfirmed", "named by "+st.ipSource.String())
		set(model.CondAddressKnown, model.CondTrue, "AddressConfirmed", st.ip.String())
	case readErr != "":
		set(model.CondProvisioned, model.CondUnknown, "ReadFailed", readErr)
		set(model.CondAddressKnown, model.CondUnknown, "ReadFailed", readErr)
	case st.provisioning:
		set(model.CondProvisioned, model.CondFalse, "NoAddressYet", "the domain runs and no source names an address")
		set(model.CondAddressKnown, model.CondFalse, "NoAddressYet", "")
	case st.domain == model.DomainUnknown:
		set(model.CondProvisioned, model.CondUnknown, "NotLookedAt", "")
		set(model.CondAddressKnown, model.CondUnknown, "NotLookedAt", "")
	default:
		set(model.CondProvisioned, model.CondFalse, "DomainNotRunning", "the domain is "+st.domain.String())
		set(model.CondAddressKnown, model.CondFalse, "DomainNotRunning", "")
	}
	switch {
	case hl.Last.Started.IsZero():
		set(model.CondHealthy, model.CondUnknown, "NotProbed", "")
	case hl.Last.Passed:
		set(model.CondHealthy, model.CondTrue, "ProbePassed", "")
	case hl.Last.Culprit.ProxysFault():
		set(model.CondHealthy, model.CondFalse, "ProbeFailed", hl.Last.Culprit.String()+": "+hl.Last.Reason)
	default:
		set(model.CondHealthy, model.CondUnknown, "NotTheProxysFault", hl.Last.Culprit.String()+": "+hl.Last.Reason)
	}
	if hl.InRotation {
		set(model.CondInRotation, model.CondTrue, "Member", hl.Reason)
	} else {
		set(model.CondInRotation, model.CondFalse, "NotMember", hl.Reason)
	}
	if p.rival != "" {
		set(model.CondAddressConflict, model.CondTrue, "AddressClaimedTwice", "held by "+string(p.rival))
	} else if p.claimed != "" {
		set(model.CondAddressConflict, model.CondTrue, "NamesAnothersAddress", "its sources name the address of "+string(p.claimed))
	} else {
		set(model.CondAddressConflict, model.CondFalse, "None", "")
	}
	return conds
}
