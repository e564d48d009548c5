package simhost

import (
	"strings"
	"time"

	libvirt "github.com/digitalocean/go-libvirt"
)

// connectProcs serve the connection and the host as a whole.
func connectProcs() table {
	return table{
		ProcAuthList:               {high: true, early: true, run: typed(authList)},
		ProcAuthPolkit:             {high: true, early: true, run: typed(authPolkit)},
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

		ProcConnectRegisterCloseCallback:   {high: true, run: typed(closeCallback)},
		ProcConnectUnregisterCloseCallback: {high: true, run: typed(closeCallback)},
	}
}

func connectOpen(c *call, _ *libvirt.ConnectOpenArgs) (void, *Error) {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	if c.h.auth != AuthNone && !c.conn.authed {
		return void{}, fail(fromRPC, libvirt.ErrRPC, "authentication required")
	}
	if c.conn.opened {
		return void{}, fail(fromRPC, libvirt.ErrInternalError, "connection already open")
	}
	c.conn.opened = true
	return void{}, nil
}

// connectClose answers and closes the connection.
func connectClose(c *call, _ *void) (void, *Error) {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	clear(c.conn.events)
	c.last = true
	return void{}, nil
}

// Features that a client may ask for (VIR_DRV_FEATURE_*), as far as they matter here.
const (
	featureFDPassing     = 8
	featureParamString   = 9
	featureKeepalive     = 10
	featureEventCallback = 14
	featureCloseCallback = 15
	featureNetworkUpdate = 16
)

// supportsFeature says what a 9.0 daemon says. To ask for keepalive switches it
// on: from then on the daemon pings, and cuts a client that does not answer.
func supportsFeature(c *call, a *libvirt.ConnectSupportsFeatureArgs) (libvirt.ConnectSupportsFeatureRet, *Error) {
	var r libvirt.ConnectSupportsFeatureRet
	switch a.Feature {
	case featureKeepalive:
		c.conn.startPings()
		r.Supported = 1
	case featureFDPassing, featureParamString, featureEventCallback, featureCloseCallback, featureNetworkUpdate:
		r.Supported = 1
	}
	return r, nil
}

// closeCallback serves the registration of close callbacks, which only a driver
// that can lose its hypervisor calls; QEMU's cannot.
func closeCallback(*call, *void) (void, *Error) { return void{}, nil }

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
