package simhost

import (
	"strconv"
	"strings"
	"time"

	libvirt "github.com/digitalocean/go-libvirt"
)

// connectProcs serve the connection and the host as a whole.
func connectProcs() table {
	return table{
		ProcAuthList:               {high: true, early: true, run: typed(authList)},
		ProcConnectOpen:            {high: true, early: true, run: typed(connectOpen)},
		ProcConnectClose:           {high: true, run: typed(connectClose)},
		ProcConnectSupportsFeature: {high: true, early: true, run: typed(supportsFeature)},
		ProcConnectGetType:         {high: true, run: typed(getType)},
		ProcConnectGetVersion:      {high: true, run: typed(getVersion)},
		ProcConnectGetLibVersion:   {high: true, run: typed(getLibVersion)},
		ProcConnectGetHostname:     {high: true, run: typed(getHostname)},
		ProcConnectGetURI:          {high: true, run: typed(getURI)},
		ProcConnectIsSecure:        {high: true, run: typed(isSecure)},
		ProcConnectGetCapabilities: {run: typed(getCapabilities)},
		ProcNodeGetInfo:            {run: typed(nodeGetInfo)},
	}
}

func authList(*call, *void) (libvirt.AuthListRet, *Error) {
	return libvirt.AuthListRet{Types: []libvirt.AuthType{0}}, nil // none
}

func connectOpen(c *call, _ *libvirt.ConnectOpenArgs) (void, *Error) {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	if c.conn.opened {
		return void{}, &Error{Code: libvirt.ErrInternalError, Domain: fromRemote, Message: "internal error: connection already open"}
	}
	c.conn.opened = true
	return void{}, nil
}

// connectClose answers; the client closes the connection itself.
func connectClose(c *call, _ *void) (void, *Error) {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	clear(c.conn.events)
	return void{}, nil
}

// supportsFeature says no to everything but event callbacks (15). A real daemon
// says yes to keepalive (10) too and begins to ping the client; this one does not.
func supportsFeature(_ *call, a *libvirt.ConnectSupportsFeatureArgs) (libvirt.ConnectSupportsFeatureRet, *Error) {
	const eventCallback = 15
	var r libvirt.ConnectSupportsFeatureRet
	if a.Feature == eventCallback {
		r.Supported = 1
	}
	return r, nil
}

func getType(*call, *void) (libvirt.ConnectGetTypeRet, *Error) {
	return libvirt.ConnectGetTypeRet{Type: "QEMU"}, nil
}

func getVersion(*call, *void) (libvirt.ConnectGetVersionRet, *Error) {
	return libvirt.ConnectGetVersionRet{HvVer: 7_002_000}, nil
}

func getLibVersion(c *call, _ *void) (libvirt.ConnectGetLibVersionRet, *Error) {
	return libvirt.ConnectGetLibVersionRet{LibVer: c.h.opts.LibVersion}, nil
}

func getHostname(c *call, _ *void) (libvirt.ConnectGetHostnameRet, *Error) {
	return libvirt.ConnectGetHostnameRet{Hostname: c.h.opts.Name}, nil
}

func getURI(*call, *void) (libvirt.ConnectGetUriRet, *Error) {
	return libvirt.ConnectGetUriRet{Uri: "qemu:///system"}, nil
}

func isSecure(*call, *void) (libvirt.ConnectIsSecureRet, *Error) {
	return libvirt.ConnectIsSecureRet{Secure: 1}, nil // as a unix socket is
}

func getCapabilities(c *call, _ *void) (libvirt.ConnectGetCapabilitiesRet, *Error) {
	return libvirt.ConnectGetCapabilitiesRet{Capabilities: c.h.capabilitiesXML()}, nil
}

func nodeGetInfo(*call, *void) (libvirt.NodeGetInfoRet, *Error) {
	r := libvirt.NodeGetInfoRet{Memory: 16 << 20, Cpus: 4, Mhz: 2400, Nodes: 1, Sockets: 1, Cores: 4, Threads: 1}
	for i, b := range []byte("x86_64") {
		r.Model[i] = int8(b)
	}
	return r, nil
}

func (h *Host) capabilitiesXML() string {
	return strings.NewReplacer("@UUID@", uuidText(h.opts.UUID)).Replace(`<capabilities>

  <host>
    <uuid>@UUID@</uuid>
    <cpu>
      <arch>x86_64</arch>
      <model>qemu64</model>
      <topology sockets='1' dies='1' cores='4' threads='1'/>
    </cpu>
    <power_management/>
    <topology>
      <cells num='1'>
        <cell id='0'>
          <memory unit='KiB'>16777216</memory>
        </cell>
      </cells>
    </topology>
  </host>

  <guest>
    <os_type>hvm</os_type>
    <arch name='x86_64'>
      <wordsize>64</wordsize>
      <emulator>/usr/bin/qemu-system-x86_64</emulator>
      <domain type='qemu'/>
      <domain type='kvm'/>
    </arch>
  </guest>

</capabilities>
`)
}

// cpuTime is what a domain has used, in nanoseconds: a tenth of its run.
func (d *Domain) cpuTime() uint64 {
	if !d.active() {
		return 0
	}
	return uint64(max(time.Since(d.started), 0) / 10)
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
