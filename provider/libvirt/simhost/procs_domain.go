package simhost

import (
	libvirt "github.com/digitalocean/go-libvirt"
)

// domainProcs serve what is known of domains without asking their guests.
func domainProcs() table {
	return table{
		ProcConnectListAllDomains:    {high: true, run: typed(listAllDomains)},
		ProcConnectGetAllDomainStats: {run: typed(getAllDomainStats)},
		ProcDomainLookupByName:       {high: true, run: typed(lookupByName)},
		ProcDomainLookupByUUID:       {high: true, run: typed(lookupByUUID)},
		ProcDomainLookupByID:         {high: true, run: typed(lookupByID)},
		ProcDomainGetState:           {high: true, run: typed(getState)},
		ProcDomainGetInfo:            {run: typed(getInfo)},
		ProcDomainIsActive:           {high: true, run: typed(isActive)},
		ProcDomainIsPersistent:       {high: true, run: typed(isPersistent)},
		ProcDomainGetXMLDesc:         {run: typed(getXMLDesc)},
		ProcDomainGetAutostart:       {high: true, run: typed(getAutostart)},
		ProcDomainSetAutostart:       {high: true, write: true, run: typed(setAutostart)},
	}
}

// onDomain runs f with the domain that a call means, under the host's mutex.
// As in the QEMU driver the UUID decides; name and ID of the argument are not looked at.
func onDomain[R any](c *call, ref libvirt.Domain, f func(d *Domain) (R, *Error)) (R, *Error) {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	d := c.h.byUUID[ref.UUID]
	if d == nil {
		var none R
		return none, fail(fromQEMU, libvirt.ErrNoDomain, "no domain with matching uuid '%s' (%s)", uuidText(ref.UUID), ref.Name)
	}
	return f(d)
}

func (d *Domain) ref() libvirt.Domain {
	return libvirt.Domain{Name: d.spec.Name, UUID: d.uuid, ID: d.id}
}

// matches applies the filter that ListAllDomains and GetAllDomainStats share:
// within each group of flags any may match, and a group with none set lets all pass.
func (d *Domain) matches(flags libvirt.ConnectListAllDomainsFlags) bool {
	pick := func(is bool, yes, no libvirt.ConnectListAllDomainsFlags) libvirt.ConnectListAllDomainsFlags {
		if is {
			return yes
		}
		return no
	}
	var state libvirt.ConnectListAllDomainsFlags
	switch d.state {
	case libvirt.DomainRunning:
		state = libvirt.ConnectListDomainsRunning
	case libvirt.DomainPaused:
		state = libvirt.ConnectListDomainsPaused
	case libvirt.DomainShutoff:
		state = libvirt.ConnectListDomainsShutoff
	default:
		state = libvirt.ConnectListDomainsOther
	}
	const (
		states    = libvirt.ConnectListDomainsRunning | libvirt.ConnectListDomainsPaused | libvirt.ConnectListDomainsShutoff | libvirt.ConnectListDomainsOther
		active    = libvirt.ConnectListDomainsActive | libvirt.ConnectListDomainsInactive
		kept      = libvirt.ConnectListDomainsPersistent | libvirt.ConnectListDomainsTransient
		autostart = libvirt.ConnectListDomainsAutostart | libvirt.ConnectListDomainsNoAutostart
	)
	passes := func(group, has libvirt.ConnectListAllDomainsFlags) bool {
		return flags&group == 0 || flags&has != 0
	}
	return passes(states, state) &&
		passes(active, pick(d.active(), libvirt.ConnectListDomainsActive, libvirt.ConnectListDomainsInactive)) &&
		passes(kept, pick(d.persistent, libvirt.ConnectListDomainsPersistent, libvirt.ConnectListDomainsTransient)) &&
		passes(autostart, pick(d.autostart, libvirt.ConnectListDomainsAutostart, libvirt.ConnectListDomainsNoAutostart))
}

func listAllDomains(c *call, a *libvirt.ConnectListAllDomainsArgs) (libvirt.ConnectListAllDomainsRet, *Error) {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	var r libvirt.ConnectListAllDomainsRet
	for _, d := range c.h.domains {
		if a.Flags != 0 && !d.matches(a.Flags) {
			continue
		}
		r.Ret++
		if a.NeedResults != 0 {
			r.Domains = append(r.Domains, d.ref())
		}
	}
	return r, nil
}

// getAllDomainStats gives the state group; of the others it gives nothing, as a
// daemon does for what its hypervisor lacks, unless told to enforce.
func getAllDomainStats(c *call, a *libvirt.ConnectGetAllDomainStatsArgs) (libvirt.ConnectGetAllDomainStatsRet, *Error) {
	flags := libvirt.ConnectGetAllDomainStatsFlags(a.Flags)
	stats := libvirt.DomainStatsTypes(a.Stats)
	if flags&libvirt.ConnectGetAllDomainsStatsEnforceStats != 0 && stats&^libvirt.DomainStatsState != 0 {
		return libvirt.ConnectGetAllDomainStatsRet{}, fail(fromQEMU, libvirt.ErrArgumentUnsupported,
			"Stats types bits 0x%x are not supported by this daemon or QEMU", uint32(stats&^libvirt.DomainStatsState))
	}
	withState := stats == 0 || stats&libvirt.DomainStatsState != 0
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	list := c.h.domains
	if len(a.Doms) > 0 {
		list = nil
		for _, ref := range a.Doms {
			if d := c.h.byUUID[ref.UUID]; d != nil { // those that are gone are left out
				list = append(list, d)
			}
		}
	}
	r := libvirt.ConnectGetAllDomainStatsRet{RetStats: make([]libvirt.DomainStatsRecord, 0, len(list))}
	const filter = 0xff
	for _, d := range list {
		if f := libvirt.ConnectListAllDomainsFlags(flags & filter); f != 0 && !d.matches(f) {
			continue
		}
		rec := libvirt.DomainStatsRecord{Dom: d.ref()}
		if withState {
			rec.Params = []libvirt.TypedParam{
				{Field: "state.state", Value: libvirt.TypedParamValue{D: paramInt, I: int32(d.state)}},
				{Field: "state.reason", Value: libvirt.TypedParamValue{D: paramInt, I: d.reason}},
			}
		}
		r.RetStats = append(r.RetStats, rec)
	}
	return r, nil
}

func lookupByName(c *call, a *libvirt.DomainLookupByNameArgs) (libvirt.DomainLookupByNameRet, *Error) {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	d := c.h.names[a.Name]
	if d == nil {
		return libvirt.DomainLookupByNameRet{}, fail(fromQEMU, libvirt.ErrNoDomain, "no domain with matching name '%s'", a.Name)
	}
	return libvirt.DomainLookupByNameRet{Dom: d.ref()}, nil
}

func lookupByUUID(c *call, a *libvirt.DomainLookupByUUIDArgs) (libvirt.DomainLookupByUUIDRet, *Error) {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	d := c.h.byUUID[a.UUID]
	if d == nil {
		return libvirt.DomainLookupByUUIDRet{}, fail(fromQEMU, libvirt.ErrNoDomain, "no domain with matching uuid '%s'", uuidText(a.UUID))
	}
	return libvirt.DomainLookupByUUIDRet{Dom: d.ref()}, nil
}

func lookupByID(c *call, a *libvirt.DomainLookupByIDArgs) (libvirt.DomainLookupByIDRet, *Error) {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	for _, d := range c.h.domains {
		if d.active() && d.id == a.ID {
			return libvirt.DomainLookupByIDRet{Dom: d.ref()}, nil
		}
	}
	return libvirt.DomainLookupByIDRet{}, fail(fromQEMU, libvirt.ErrNoDomain, "no domain with matching id %d", a.ID)
}

func getState(c *call, a *libvirt.DomainGetStateArgs) (libvirt.DomainGetStateRet, *Error) {
	return onDomain(c, a.Dom, func(d *Domain) (libvirt.DomainGetStateRet, *Error) {
		return libvirt.DomainGetStateRet{State: int32(d.state), Reason: d.reason}, nil
	})
}

func getInfo(c *call, a *libvirt.DomainGetInfoArgs) (libvirt.DomainGetInfoRet, *Error) {
	return onDomain(c, a.Dom, func(d *Domain) (libvirt.DomainGetInfoRet, *Error) {
		return libvirt.DomainGetInfoRet{
			State: uint8(d.state), MaxMem: d.spec.MemoryMiB << 10, Memory: d.spec.MemoryMiB << 10,
			NrVirtCPU: d.spec.VCPUs, CPUTime: d.cpuTime(),
		}, nil
	})
}

func isActive(c *call, a *libvirt.DomainIsActiveArgs) (libvirt.DomainIsActiveRet, *Error) {
	return onDomain(c, a.Dom, func(d *Domain) (libvirt.DomainIsActiveRet, *Error) {
		return libvirt.DomainIsActiveRet{Active: boolInt(d.active())}, nil
	})
}

func isPersistent(c *call, a *libvirt.DomainIsPersistentArgs) (libvirt.DomainIsPersistentRet, *Error) {
	return onDomain(c, a.Dom, func(d *Domain) (libvirt.DomainIsPersistentRet, *Error) {
		return libvirt.DomainIsPersistentRet{Persistent: boolInt(d.persistent)}, nil
	})
}

func getXMLDesc(c *call, a *libvirt.DomainGetXMLDescArgs) (libvirt.DomainGetXMLDescRet, *Error) {
	return onDomain(c, a.Dom, func(d *Domain) (libvirt.DomainGetXMLDescRet, *Error) {
		live := d.active() && a.Flags&libvirt.DomainXMLInactive == 0
		return libvirt.DomainGetXMLDescRet{XML: d.xml(live)}, nil
	})
}

func getAutostart(c *call, a *libvirt.DomainGetAutostartArgs) (libvirt.DomainGetAutostartRet, *Error) {
	return onDomain(c, a.Dom, func(d *Domain) (libvirt.DomainGetAutostartRet, *Error) {
		return libvirt.DomainGetAutostartRet{Autostart: boolInt(d.autostart)}, nil
	})
}

func setAutostart(c *call, a *libvirt.DomainSetAutostartArgs) (void, *Error) {
	return onDomain(c, a.Dom, func(d *Domain) (void, *Error) {
		if !d.persistent {
			return void{}, fail(fromQEMU, libvirt.ErrOperationInvalid, "cannot set autostart for transient domain")
		}
		d.autostart = a.Autostart != 0
		return void{}, nil
	})
}

func boolInt(b bool) int32 {
	if b {
		return 1
	}
	return 0
}
