package simhost

import (
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	libvirt "github.com/digitalocean/go-libvirt"
)

const definedUUID = "11111111-2222-4333-8444-555555555555"

// defined is a domain's XML as a client would write it.
func defined(name, uuid, more string) string {
	return "<domain type='kvm'><name>" + name + "</name><uuid>" + uuid + "</uuid><memory unit='MiB'>128</memory><vcpu>2</vcpu>" +
		"<metadata><vd:proxy xmlns:vd='urn:virdeck' uid='u-1'><vd:phase>new</vd:phase></vd:proxy></metadata>" +
		"<devices><disk type='volume' device='disk'><driver name='qemu' type='qcow2'/><source pool='default' volume='" + name + ".qcow2'/><target dev='vda' bus='virtio'/></disk>" +
		"<interface type='network'><mac address='52:54:00:aa:bb:cc'/><source network='default'/></interface>" +
		"<channel type='unix'><target type='virtio' name='org.qemu.guest_agent.0'/></channel>" + more + "</devices></domain>"
}

// A domain may be defined before its disks are there; it starts when they are.
func TestDefine(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHost(t, Options{OnDefine: func(s *DomainSpec) { s.Port = 8080 }})
		h.AddVolume("default", VolumeSpec{Name: "base.qcow2", Format: "qcow2", Capacity: 1 << 30, Allocation: 1 << 20})
		l := connect(t, h)
		dom, err := l.DomainDefineXMLFlags(defined("p-01", definedUUID, ""), 0)
		if err != nil || dom.Name != "p-01" || dom.ID != -1 || uuidText(dom.UUID) != definedUUID {
			t.Fatalf("domain %+v, %v", dom, err)
		}
		d := h.Domain("p-01")
		if d.Port() != 8080 || d.MAC() != "52:54:00:aa:bb:cc" {
			t.Errorf("port %d, card %s", d.Port(), d.MAC())
		}
		wantError(t, l.DomainCreate(dom), libvirt.ErrNoStorageVol, "Storage volume not found: no storage vol with matching name 'p-01.qcow2'")
		p, err := l.StoragePoolLookupByName("default")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.StorageVolCreateXML(p, overlay("p-01.qcow2", images+"base.qcow2"), 0); err != nil {
			t.Fatal(err)
		}
		if err := l.DomainCreate(dom); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if got := read(l, d, srcAgent); !strings.Contains(got, "192.168.122.2/24") {
			t.Errorf("agent %q", got)
		}
		text, err := l.DomainGetXMLDesc(dom, 0)
		for _, want := range []string{
			"<source pool='default' volume='p-01.qcow2'/>", "<memory unit='KiB'>131072</memory>", "<vcpu placement='static'>2</vcpu>",
			`<vd:proxy xmlns:vd="urn:virdeck" uid="u-1"><vd:phase>new</vd:phase></vd:proxy>`,
		} {
			if err != nil || !strings.Contains(text, want) {
				t.Errorf("%v: no %s in\n%s", err, want, text)
			}
		}
		// Its volume may be deleted under it, and it goes on; it starts no more.
		v, err := l.StorageVolLookupByName(p, "p-01.qcow2")
		if err != nil {
			t.Fatal(err)
		}
		if err := l.StorageVolDelete(v, 0); err != nil || d.ID() < 0 {
			t.Errorf("delete under a running guest: %v, ID %d", err, d.ID())
		}
		if err := l.DomainDestroy(dom); err != nil {
			t.Fatal(err)
		}
		wantError(t, l.DomainCreate(dom), libvirt.ErrNoStorageVol, "Storage volume not found: no storage vol with matching name 'p-01.qcow2'")
	})
}

func TestDefine_refused(t *testing.T) {
	h := newHost(t, Options{})
	l := connect(t, h)
	if _, err := l.DomainDefineXML(defined("p-01", definedUUID, "")); err != nil {
		t.Fatal(err)
	}
	other := "22222222-2222-4333-8444-555555555555"
	for _, c := range []struct {
		xml     string
		code    libvirt.ErrorNumber
		message string
	}{
		{defined("p-01", other, ""), libvirt.ErrOperationFailed, "operation failed: domain 'p-01' already exists with uuid " + definedUUID},
		{defined("p-02", definedUUID, ""), libvirt.ErrOperationFailed, "operation failed: domain 'p-01' is already defined with uuid " + definedUUID},
		{"<domain/>", libvirt.ErrNoName, "missing name information"},
		{"<network/>", libvirt.ErrXMLError, "XML error: unexpected root element <network>, expecting <domain>"},
		{"<domain><name>a/b</name></domain>", libvirt.ErrXMLError, "XML error: name a/b cannot contain '/'"},
		{"<domain><name>x</name><uuid>12</uuid></domain>", libvirt.ErrInternalError, "internal error: malformed uuid element"},
		{"<domain><name>", libvirt.ErrXMLDetail, "(domain_definition):1: XML syntax error on line 1: unexpected EOF"},
	} {
		_, err := l.DomainDefineXMLFlags(c.xml, 0)
		wantError(t, err, c.code, c.message)
	}
	if n := len(h.Domains()); n != 1 {
		t.Errorf("%d domains, want the one", n)
	}
}

// A domain that runs keeps its configuration until its end; one that is redefined
// keeps its address with its card.
func TestDefine_again(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHost(t, Options{})
		h.AddVolume("default", VolumeSpec{Name: "p-01.qcow2"})
		l := connect(t, h)
		dom, err := l.DomainDefineXML(defined("p-01", definedUUID, ""))
		if err != nil {
			t.Fatal(err)
		}
		d := h.Domain("p-01")
		if err := l.DomainCreate(dom); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		before := d.Addresses()
		more := "<interface type='bridge'><mac address='52:54:00:00:00:99'/><source bridge='br0'/></interface>"
		if _, err := l.DomainDefineXML(strings.Replace(defined("p-01", definedUUID, more), "new", "ready", 1)); err != nil {
			t.Fatal(err)
		}
		xml := func(flags libvirt.DomainXMLFlags) string {
			t.Helper()
			text, err := l.DomainGetXMLDesc(dom, flags)
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		if live, conf := xml(0), xml(libvirt.DomainXMLInactive); strings.Contains(live, "bridge='br0'") || !strings.Contains(live, ">new<") || !strings.Contains(conf, ">ready<") {
			t.Errorf("live\n%s\nconfiguration\n%s", live, conf)
		}
		if err := l.DomainDestroy(dom); err != nil {
			t.Fatal(err)
		}
		if off := xml(0); !strings.Contains(off, "bridge='br0'") || !strings.Contains(off, ">ready<") {
			t.Errorf("after its end\n%s", off)
		}
		if got := d.Addresses(); len(got) != 1 || got[0] != before[0] || before[0] != netip.MustParseAddr("192.168.122.2") {
			t.Errorf("addresses %v, before %v", got, before)
		}
	})
}

func TestMetadata(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHost(t, Options{})
		d := h.AddDomain(DomainSpec{Name: "p-01"})
		l := connect(t, h)
		dom := ref(d)
		const uri, element = "urn:virdeck", int32(libvirt.DomainMetadataElement)
		const none = "metadata not found: Requested metadata element is not present"
		set := func(text string, flags libvirt.DomainModificationImpact) error {
			return l.DomainSetMetadata(dom, element, libvirt.OptString{text}, libvirt.OptString{"vd"}, libvirt.OptString{uri}, flags)
		}
		get := func(flags libvirt.DomainModificationImpact) string {
			text, err := l.DomainGetMetadata(dom, element, libvirt.OptString{uri}, flags)
			if err != nil {
				return err.Error()
			}
			return text
		}
		const live, config = libvirt.DomainAffectLive, libvirt.DomainAffectConfig
		if got := get(0); got != none {
			t.Errorf("at first %q", got)
		}
		wantError(t, set("<a/>", live), libvirt.ErrOperationInvalid, "Requested operation is not valid: domain is not running")
		if err := set(`<mark uid="1"><x y='&lt;'>t</x></mark>`, 0); err != nil {
			t.Fatal(err)
		}
		if got, want := get(config), `<mark uid="1"><x y="&lt;">t</x></mark>`; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		text, err := l.DomainGetXMLDesc(dom, 0)
		if err != nil || !strings.Contains(text, `<vd:mark xmlns:vd="urn:virdeck" uid="1"><vd:x y="&lt;">t</vd:x></vd:mark>`) {
			t.Errorf("%v in\n%s", err, text)
		}
		// Without flags a running domain's is live alone, and lost with it.
		if err := l.DomainCreate(dom); err != nil {
			t.Fatal(err)
		}
		if err := set("<live/>", 0); err != nil {
			t.Fatal(err)
		}
		if a, b := get(0), get(config); a != "<live/>" || !strings.HasPrefix(b, "<mark") {
			t.Errorf("live %q, configuration %q", a, b)
		}
		if err := l.DomainDestroy(dom); err != nil {
			t.Fatal(err)
		}
		if got := get(0); !strings.HasPrefix(got, "<mark") {
			t.Errorf("after its end %q", got)
		}
		if err := l.DomainCreate(dom); err != nil {
			t.Fatal(err)
		}
		if err := set("<both/>", live|config); err != nil {
			t.Fatal(err)
		}
		if a, b := get(live), get(config); a != "<both/>" || b != a {
			t.Errorf("live %q, configuration %q", a, b)
		}
		if err := l.DomainSetMetadata(dom, element, nil, nil, libvirt.OptString{uri}, live|config); err != nil {
			t.Fatal(err)
		}
		if a, b := get(live), get(config); a != none || b != none {
			t.Errorf("taken away: live %q, configuration %q", a, b)
		}
		wantError(t, set("<a><b></a>", 0), libvirt.ErrXMLDetail, "(metadata_xml):1: not one element")

		// A transient one has no configuration to write to.
		if err := l.DomainUndefine(dom); err != nil {
			t.Fatal(err)
		}
		wantError(t, set("<a/>", config), libvirt.ErrOperationInvalid, "Requested operation is not valid: transient domains do not have any persistent config")
		wantError(t, l.DomainSetAutostart(dom, 1), libvirt.ErrOperationInvalid, "Requested operation is not valid: cannot set autostart for transient domain")
	})
}

func TestMetadataEvent(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHost(t, Options{})
		d := h.AddDomain(DomainSpec{Name: "p-01", Running: true})
		l := connect(t, h)
		events, err := l.SubscribeEvents(t.Context(), libvirt.DomainEventIDMetadataChange, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.DomainSetMetadata(ref(d), int32(libvirt.DomainMetadataElement), libvirt.OptString{"<a/>"}, libvirt.OptString{"k"}, libvirt.OptString{"urn:x"}, 0); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select {
		case ev := <-events:
			m, ok := ev.(*libvirt.DomainEventCallbackMetadataChangeMsg)
			if !ok || m.Dom.Name != "p-01" || len(m.Nsuri) != 1 || m.Nsuri[0] != "urn:x" {
				t.Errorf("event %+v", ev)
			}
		default:
			t.Error("no event")
		}
	})
}
