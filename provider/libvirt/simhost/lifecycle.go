package simhost

import (
	"net/netip"
	"slices"
	"time"

	libvirt "github.com/digitalocean/go-libvirt"
)

// newDomain makes a domain, shut off, and lists it. The caller holds h.mu.
func (h *Host) newDomain(spec DomainSpec) *Domain {
	if spec.Name == "" {
		panic("simhost: a domain needs a name")
	}
	if spec.UUID == ([16]byte{}) {
		spec.UUID = derivedUUID("domain", h.opts.Name, spec.Name)
	}
	if h.names[spec.Name] != nil || h.byUUID[spec.UUID] != nil {
		panic("simhost: two domains with the name or UUID of " + spec.Name)
	}
	if spec.NICs == nil {
		spec.NICs = []NIC{{Network: "default"}}
	}
	if spec.Port == 0 {
		spec.Port = 3128
	}
	if spec.ShutdownTakes == 0 {
		spec.ShutdownTakes = 2 * time.Second
	}
	if spec.MemoryMiB == 0 {
		spec.MemoryMiB = 256
	}
	if spec.VCPUs == 0 {
		spec.VCPUs = 1
	}
	spec.Boot = spec.Boot.withDefaults()
	d := &Domain{
		h: h, spec: spec, uuid: spec.UUID, exit: spec.Exit, proxy: spec.Proxy,
		id: -1, state: libvirt.DomainShutoff, persistent: true, autostart: spec.Autostart,
		guest: guest{job: make(chan struct{}, 1)},
	}
	if !d.exit.IsValid() {
		d.exit = h.origin.newExit()
	}
	for _, n := range spec.NICs {
		d.nics = append(d.nics, h.newNIC(d, n))
	}
	h.domains = append(h.domains, d)
	h.byUUID[d.uuid], h.names[spec.Name] = d, d
	return d
}

func (h *Host) newNIC(d *Domain, spec NIC) *nic {
	if spec.Network == "" && spec.Bridge == "" {
		spec.Network = "default"
	}
	if spec.MAC == "" {
		h.macs++
		spec.MAC = numberedMAC(h.opts.UUID, h.macs)
	}
	n := &nic{d: d, spec: spec, mac: canonicalMAC(spec.MAC)}
	addrs := spec.Addresses
	if net := h.network(spec.Network); net != nil && len(addrs) == 0 && !net.spec.NoDHCP {
		if p, ok := net.allocate(); ok {
			addrs = []netip.Prefix{p}
		}
	}
	h.setAddrs(n, addrs)
	return n
}

// setAddrs gives a card other addresses, and keeps the index of holders.
func (h *Host) setAddrs(n *nic, addrs []netip.Prefix) {
	for _, p := range n.addrs {
		rest := slices.DeleteFunc(h.holders[p.Addr()], func(o *nic) bool { return o == n })
		if len(rest) == 0 {
			delete(h.holders, p.Addr())
		} else {
			h.holders[p.Addr()] = rest
		}
	}
	if len(n.addrs) > 0 {
		n.lastAddrs = n.addrs
	}
	n.addrs = slices.Clone(addrs)
	for _, p := range n.addrs {
		h.holders[p.Addr()] = append(h.holders[p.Addr()], n)
	}
}

// Start boots the domain: it gets a new ID and its guest goes through its
// stages. It is an *Error (code 55) when the domain is active.
func (d *Domain) Start() error {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	if e := d.start(false); e != nil {
		return e
	}
	return nil
}

func (d *Domain) start(paused bool) *Error {
	if d.active() {
		return fail(fromQEMU, libvirt.ErrOperationInvalid, "domain is already running")
	}
	if e := d.disksThere(); e != nil {
		return e
	}
	if e := d.networksThere(); e != nil {
		return e
	}
	d.readSeed()
	d.nvram = d.nvram || d.efi
	d.activate(paused)
	d.guest.bootStages(d, d.spec.Boot)
	return nil
}

// activate gives the domain a process: ID, state, host side of its cards. The
// events are a real daemon's: the processors go on, then the domain is started.
func (d *Domain) activate(paused bool) {
	h := d.h
	h.nextID++
	d.live = d.config.clone()
	d.id, d.started = h.nextID, time.Now()
	d.state, d.reason = libvirt.DomainRunning, int32(libvirt.DomainRunningBooted)
	if paused {
		d.state, d.reason = libvirt.DomainPaused, int32(libvirt.DomainPausedUser)
	}
	d.guest.reset(d)
	for _, n := range d.nics {
		n.target = vnetName(h.vnet)
		h.vnet++
	}
	if !d.spec.NoAgentChannel {
		h.emitAgent(d, libvirt.ConnectDomainEventAgentLifecycleStateDisconnected, libvirt.ConnectDomainEventAgentLifecycleReasonDomainStarted)
	}
	if !paused {
		h.emitLifecycle(d, libvirt.DomainEventResumed, int32(libvirt.DomainEventResumedUnpaused))
	}
	h.emitLifecycle(d, libvirt.DomainEventStarted, int32(libvirt.DomainEventStartedBooted))
	if paused {
		h.emitLifecycle(d, libvirt.DomainEventSuspended, int32(libvirt.DomainEventSuspendedPaused))
	}
	d.notify()
}

// bootDone starts the domain as one that has been up for long.
func (d *Domain) bootDone() {
	d.activate(false)
	b := d.spec.Boot
	d.started = d.started.Add(-24 * time.Hour)
	if b.Lease >= 0 {
		d.guest.netUp(d)
	}
	if b.Agent >= 0 {
		d.guest.agentUp(d)
		d.guest.synced = true
	}
	d.guest.agentLists = b.AgentAddress >= 0
	d.guest.proxyUp = b.Proxy >= 0
}

// Shutdown asks the guest to power off, which it does after its ShutdownTakes, if
// it listens.
// It is an *Error (code 55) when the domain is not running.
func (d *Domain) Shutdown() error {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	if e := d.shutdown(); e != nil {
		return e
	}
	return nil
}

func (d *Domain) shutdown() *Error {
	if d.state != libvirt.DomainRunning {
		return fail(fromQEMU, libvirt.ErrOperationInvalid, "domain is not running")
	}
	if d.spec.ShutdownTakes < 0 {
		return nil // the guest was asked, that is all a daemon knows
	}
	run := d.id
	d.guest.after(d, d.spec.ShutdownTakes, func() {
		if d.id != run {
			return
		}
		d.h.emitLifecycle(d, libvirt.DomainEventShutdown, int32(libvirt.DomainEventShutdownGuest))
		d.deactivate(int32(libvirt.DomainShutoffShutdown), libvirt.DomainEventStoppedShutdown)
	})
	return nil
}

// Destroy pulls the plug. It is an *Error (code 55) when the domain is not active.
func (d *Domain) Destroy() error {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	if e := d.destroy(); e != nil {
		return e
	}
	return nil
}

func (d *Domain) destroy() *Error {
	if !d.active() {
		return notRunning()
	}
	d.h.emitLifecycle(d, libvirt.DomainEventShutdown, int32(libvirt.DomainEventShutdownHost)) // of the process's SIGTERM
	d.deactivate(int32(libvirt.DomainShutoffDestroyed), libvirt.DomainEventStoppedDestroyed)
	return nil
}

// Crash ends the guest's process as a crash with on_crash=destroy does: shut
// off, reason crashed. It has no effect on an inactive domain.
func (d *Domain) Crash() {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	if d.active() {
		d.deactivate(int32(libvirt.DomainShutoffCrashed), libvirt.DomainEventStoppedCrashed)
	}
}

// deactivate ends the domain's process: it is shut off then, for this reason.
func (d *Domain) deactivate(reason int32, detail libvirt.DomainEventStoppedDetailType) {
	now := d.h.now()
	for _, n := range d.nics {
		if net := d.h.network(n.spec.Network); net != nil {
			net.current(n.mac, now) // the last renewal before the end
		}
	}
	d.id, d.state, d.reason = -1, libvirt.DomainShutoff, reason
	d.guest.reset(d)
	d.h.emitLifecycle(d, libvirt.DomainEventStopped, int32(detail))
	for _, n := range d.nics {
		n.target = ""
	}
	d.live = metadata{}
	if d.next != nil {
		d.redefine(d.next)
	}
	d.notify()
	if !d.persistent {
		d.remove()
	}
}

// Pause stops the guest's processors for this reason; libvirt's events tell an
// I/O error and a watchdog from the rest. No effect unless it runs.
func (d *Domain) Pause(reason libvirt.DomainPausedReason) {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	d.pause(reason)
}

func (d *Domain) pause(reason libvirt.DomainPausedReason) {
	if d.state != libvirt.DomainRunning {
		return
	}
	d.state, d.reason = libvirt.DomainPaused, int32(reason)
	var detail libvirt.DomainEventSuspendedDetailType
	switch reason {
	case libvirt.DomainPausedIoerror:
		detail = libvirt.DomainEventSuspendedIoerror
	case libvirt.DomainPausedWatchdog:
		detail = libvirt.DomainEventSuspendedWatchdog
	default:
		detail = libvirt.DomainEventSuspendedPaused
	}
	d.h.emitLifecycle(d, libvirt.DomainEventSuspended, int32(detail))
	d.notify()
}

// Resume lets a paused guest go on. No effect unless it is paused.
func (d *Domain) Resume() {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	d.resume()
}

func (d *Domain) resume() {
	if d.state != libvirt.DomainPaused {
		return
	}
	d.state, d.reason = libvirt.DomainRunning, int32(libvirt.DomainRunningUnpaused)
	d.h.emitLifecycle(d, libvirt.DomainEventResumed, int32(libvirt.DomainEventResumedUnpaused))
	d.notify()
}

// Reboot restarts the guest inside its process: the ID and the lease stay, the
// agent and the proxy come back by the boot stages. No effect unless it runs.
func (d *Domain) Reboot() {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	if d.state == libvirt.DomainRunning {
		d.reboot()
	}
}

func (d *Domain) reboot() {
	if d.guest.agent != agentDown {
		d.h.emitAgent(d, libvirt.ConnectDomainEventAgentLifecycleStateDisconnected, libvirt.ConnectDomainEventAgentLifecycleReasonChannel)
	}
	timeout := d.guest.timeout
	d.guest.reset(d)
	d.guest.timeout = timeout // it belongs to the process, which goes on
	d.guest.bootStages(d, d.spec.Boot)
	d.breakConns()
	d.h.emitReboot(d)
	d.notify()
}

// Undefine removes the domain: at once when it is inactive, else at its end
// (until then it is transient).
func (d *Domain) Undefine() {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	d.undefine()
}

func (d *Domain) undefine() {
	if d.gone || !d.persistent {
		return
	}
	d.persistent = false
	d.h.emitLifecycle(d, libvirt.DomainEventUndefined, int32(libvirt.DomainEventUndefinedRemoved))
	if !d.active() {
		d.remove()
	}
}

func (d *Domain) remove() {
	d.gone = true
	delete(d.h.byUUID, d.uuid)
	delete(d.h.names, d.spec.Name)
	for _, n := range d.nics {
		d.h.setAddrs(n, nil)
	}
	d.h.domains = slices.DeleteFunc(d.h.domains, func(o *Domain) bool { return o == d })
	d.notify()
}

// Rename gives the domain another name. It is an *Error (code 55) when the
// domain is active or transient, as a real daemon has it, and panics like
// AddDomain when the name is taken.
func (d *Domain) Rename(name string) error {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	switch {
	case name == "" || d.h.names[name] != nil:
		panic("simhost: no name, or one that is taken: " + name)
	case d.active():
		return fail(fromQEMU, libvirt.ErrOperationInvalid, "cannot rename active domain")
	case !d.persistent:
		return fail(fromQEMU, libvirt.ErrOperationInvalid, "cannot rename a transient domain")
	}
	d.h.emitLifecycle(d, libvirt.DomainEventUndefined, int32(libvirt.DomainEventUndefinedRenamed))
	delete(d.h.names, d.spec.Name)
	d.spec.Name = name
	d.h.names[name] = d
	d.h.emitLifecycle(d, libvirt.DomainEventDefined, int32(libvirt.DomainEventDefinedRenamed))
	return nil
}

// Gone says whether the domain has been undefined and does not run.
func (d *Domain) Gone() bool {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	return d.gone
}

// SetBoot changes the stages of the next boot.
func (d *Domain) SetBoot(b Boot) {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	d.spec.Boot = b.withDefaults()
}

// active says whether the domain has a process.
func (d *Domain) active() bool { return d.id != -1 }

// notify wakes whoever waits for a change of the domain.
func (d *Domain) notify() {
	if d.changed != nil {
		close(d.changed)
		d.changed = nil
	}
}

// change returns a channel that the next change closes.
func (d *Domain) change() <-chan struct{} {
	if d.changed == nil {
		d.changed = make(chan struct{})
	}
	return d.changed
}

func notRunning() *Error {
	return fail(fromDomain, libvirt.ErrOperationInvalid, "domain is not running")
}
