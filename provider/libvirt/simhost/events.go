package simhost

import (
	libvirt "github.com/digitalocean/go-libvirt"
)

// eventProcs serve the registration of event callbacks. Lifecycle, reboot,
// agent lifecycle and metadata events are sent; the others can be registered for and stay silent.
func eventProcs() table {
	return table{
		ProcConnectDomainEventCallbackRegisterAny: {high: true, run: typed(registerAny)},
		ProcConnectDomainEventCallbackDeregister:  {high: true, run: typed(deregisterAny)},
	}
}

func registerAny(c *call, a *libvirt.ConnectDomainEventCallbackRegisterAnyArgs) (libvirt.ConnectDomainEventCallbackRegisterAnyRet, *Error) {
	var r libvirt.ConnectDomainEventCallbackRegisterAnyRet
	const last = 26 // the events of a 9.0 daemon
	if a.EventID < 0 || a.EventID > last {
		return r, fail(fromRPC, libvirt.ErrInternalError, "unsupported event ID %d", a.EventID)
	}
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	reg := registration{event: libvirt.DomainEventID(a.EventID)}
	if len(a.Dom) > 0 {
		id := [16]byte(a.Dom[0].UUID)
		reg.dom = &id
	}
	r.CallbackID = c.conn.d.nextCB // one count for all of the daemon's connections
	c.conn.d.nextCB++
	c.conn.events[r.CallbackID] = reg
	return r, nil
}

func deregisterAny(c *call, a *libvirt.ConnectDomainEventCallbackDeregisterAnyArgs) (void, *Error) {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	if _, ok := c.conn.events[a.CallbackID]; !ok {
		return void{}, fail(fromRPC, libvirt.ErrInternalError, "domain event callback %d not registered", a.CallbackID)
	}
	delete(c.conn.events, a.CallbackID)
	return void{}, nil
}

// emit sends an event to every callback that asked for it. The caller holds
// h.mu; message makes the message for one callback.
func (h *Host) emit(d *Domain, id libvirt.DomainEventID, proc Proc, message func(callback int32) any) {
	if h.daemon == nil || h.noEvents {
		return
	}
	for c := range h.daemon.conns {
		for callback, reg := range c.events {
			if reg.event != id || reg.dom != nil && *reg.dom != d.uuid {
				continue
			}
			data, err := marshal(message(callback))
			if err != nil {
				panic("simhost: an event that cannot be encoded: " + err.Error()) // its type is the library's
			}
			c.send(outgoing{data: frame(header{prog: progRemote, vers: 1, proc: uint32(proc), typ: typeMessage, serial: 1}, data)})
		}
	}
}

func (h *Host) emitLifecycle(d *Domain, event libvirt.DomainEventType, detail int32) {
	h.emit(d, libvirt.DomainEventIDLifecycle, ProcDomainEventCallbackLifecycle, func(callback int32) any {
		return libvirt.DomainEventCallbackLifecycleMsg{
			CallbackID: callback,
			Msg:        libvirt.DomainEventLifecycleMsg{Dom: d.ref(), Event: int32(event), Detail: detail},
		}
	})
}

func (h *Host) emitReboot(d *Domain) {
	h.emit(d, libvirt.DomainEventIDReboot, ProcDomainEventCallbackReboot, func(callback int32) any {
		return libvirt.DomainEventCallbackRebootMsg{CallbackID: callback, Msg: libvirt.DomainEventRebootMsg{Dom: d.ref()}}
	})
}

func (h *Host) emitMetadata(d *Domain, kind int32, uri libvirt.OptString) {
	h.emit(d, libvirt.DomainEventIDMetadataChange, ProcDomainEventCallbackMetadataChange, func(callback int32) any {
		return libvirt.DomainEventCallbackMetadataChangeMsg{CallbackID: callback, Dom: d.ref(), Type: kind, Nsuri: uri}
	})
}

func (h *Host) emitAgent(d *Domain, state libvirt.ConnectDomainEventAgentLifecycleState, reason libvirt.ConnectDomainEventAgentLifecycleReason) {
	h.emit(d, libvirt.DomainEventIDAgentLifecycle, ProcDomainEventCallbackAgentLifecycle, func(callback int32) any {
		return libvirt.DomainEventCallbackAgentLifecycleMsg{
			CallbackID: callback, Dom: d.ref(), State: int32(state), Reason: int32(reason),
		}
	})
}
