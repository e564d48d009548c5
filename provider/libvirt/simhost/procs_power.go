package simhost

import (
	libvirt "github.com/digitalocean/go-libvirt"
)

// powerProcs serve what starts, stops and removes domains.
func powerProcs() table {
	return table{
		ProcDomainCreate:          {write: true, run: typed(domainCreate)},
		ProcDomainCreateWithFlags: {write: true, run: typed(domainCreateWithFlags)},
		ProcDomainShutdown:        {write: true, run: typed(domainShutdown)},
		ProcDomainShutdownFlags:   {write: true, run: typed(domainShutdownFlags)},
		ProcDomainDestroy:         {high: true, write: true, run: typed(domainDestroy)},
		ProcDomainDestroyFlags:    {high: true, write: true, run: typed(domainDestroyFlags)},
		ProcDomainReboot:          {write: true, run: typed(domainReboot)},
		ProcDomainReset:           {write: true, run: typed(domainReset)},
		ProcDomainSuspend:         {write: true, run: typed(domainSuspend)},
		ProcDomainResume:          {write: true, run: typed(domainResume)},
		ProcDomainUndefine:        {high: true, write: true, run: typed(domainUndefine)},
		ProcDomainUndefineFlags:   {high: true, write: true, run: typed(domainUndefineFlags)},
	}
}

// act runs an operation without a result on a domain.
func act(c *call, ref libvirt.Domain, f func(d *Domain) *Error) (void, *Error) {
	return onDomain(c, ref, func(d *Domain) (void, *Error) { return void{}, f(d) })
}

func domainCreate(c *call, a *libvirt.DomainCreateArgs) (void, *Error) {
	return act(c, a.Dom, func(d *Domain) *Error { return d.start(false) })
}

// domainCreateWithFlags answers with the caller's own words for the domain, and its new ID.
func domainCreateWithFlags(c *call, a *libvirt.DomainCreateWithFlagsArgs) (libvirt.DomainCreateWithFlagsRet, *Error) {
	return onDomain(c, a.Dom, func(d *Domain) (libvirt.DomainCreateWithFlagsRet, *Error) {
		e := d.start(a.Flags&uint32(libvirt.DomainStartPaused) != 0)
		return libvirt.DomainCreateWithFlagsRet{Dom: libvirt.Domain{Name: a.Dom.Name, UUID: a.Dom.UUID, ID: d.id}}, e
	})
}

func domainShutdown(c *call, a *libvirt.DomainShutdownArgs) (void, *Error) {
	return act(c, a.Dom, (*Domain).shutdown)
}

func domainShutdownFlags(c *call, a *libvirt.DomainShutdownFlagsArgs) (void, *Error) {
	return act(c, a.Dom, (*Domain).shutdown)
}

func domainDestroy(c *call, a *libvirt.DomainDestroyArgs) (void, *Error) {
	return act(c, a.Dom, (*Domain).destroy)
}

func domainDestroyFlags(c *call, a *libvirt.DomainDestroyFlagsArgs) (void, *Error) {
	return act(c, a.Dom, (*Domain).destroy)
}

// rebootIfActive serves both ways of restarting a guest inside its process. One
// that is paused takes the request, and nothing happens.
func rebootIfActive(d *Domain) *Error {
	if !d.active() {
		return notRunning()
	}
	if d.state == libvirt.DomainRunning {
		d.reboot()
	}
	return nil
}

func domainReboot(c *call, a *libvirt.DomainRebootArgs) (void, *Error) {
	return act(c, a.Dom, rebootIfActive)
}

func domainReset(c *call, a *libvirt.DomainResetArgs) (void, *Error) {
	return act(c, a.Dom, rebootIfActive)
}

func domainSuspend(c *call, a *libvirt.DomainSuspendArgs) (void, *Error) {
	return act(c, a.Dom, func(d *Domain) *Error {
		if !d.active() {
			return notRunning()
		}
		d.pause(libvirt.DomainPausedUser)
		return nil
	})
}

func domainResume(c *call, a *libvirt.DomainResumeArgs) (void, *Error) {
	return act(c, a.Dom, func(d *Domain) *Error {
		switch {
		case !d.active():
			return notRunning()
		case d.state == libvirt.DomainRunning:
			return fail(fromQEMU, libvirt.ErrOperationInvalid, "domain is already running")
		}
		d.resume()
		return nil
	})
}

func domainUndefine(c *call, a *libvirt.DomainUndefineArgs) (void, *Error) {
	return act(c, a.Dom, func(d *Domain) *Error { return d.undefineWith(0) })
}

func domainUndefineFlags(c *call, a *libvirt.DomainUndefineFlagsArgs) (void, *Error) {
	return act(c, a.Dom, func(d *Domain) *Error { return d.undefineWith(a.Flags) })
}

func (d *Domain) undefineWith(flags libvirt.DomainUndefineFlagsValues) *Error {
	const keep = libvirt.DomainUndefineKeepNvram
	switch {
	case !d.persistent:
		return fail(fromQEMU, libvirt.ErrOperationInvalid, "cannot undefine transient domain")
	case d.nvram && flags&(libvirt.DomainUndefineNvram|keep) == 0:
		return fail(fromQEMU, libvirt.ErrOperationInvalid, "cannot undefine domain with nvram")
	}
	d.undefine()
	return nil
}
