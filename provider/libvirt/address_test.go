package libvirt

import (
	"errors"
	"net/netip"
	"testing"

	"virdeck/model"
	"virdeck/provider"
)

func said(src model.Source, addrs ...string) answer {
	a := answer{Outcome: model.Outcome{Source: src, Kind: model.OutcomeEmpty}}
	for _, s := range addrs {
		a.Kind = model.OutcomeAddresses
		a.Addresses = append(a.Addresses, addr(s))
	}
	return a
}

func gave(src model.Source, err error) answer {
	a := failed(err)
	a.Source = src
	return a
}

func na(src model.Source) answer {
	return answer{Outcome: model.Outcome{Source: src, Kind: model.OutcomeNotApplicable}}
}

func TestJudge(t *testing.T) {
	e86 := &provider.CodedError{Code: 86, Message: "Guest agent is not responding: QEMU guest agent is not connected"}
	e8 := &provider.CodedError{Code: 8, Message: "invalid argument"}
	e88 := &provider.CodedError{Code: 88, Message: "access denied"}
	busy := provider.ErrNotAsked
	const lease, agent, arp = model.SourceLease, model.SourceAgent, model.SourceARP
	tests := []struct {
		name    string
		answers []answer
		hint    string
		prefer  Family
		state   model.InstanceState
		addr    string
		won     model.Source
		class   provider.Class
		msg     string
	}{
		{name: "one source is enough", answers: []answer{na(lease), gave(agent, e86), said(arp, "10.0.0.5")},
			state: model.InstanceRunning, addr: "10.0.0.5", won: arp},
		{name: "an address beats not asked", answers: []answer{said(lease, "10.0.0.5"), gave(agent, busy), said(arp)},
			state: model.InstanceRunning, addr: "10.0.0.5", won: lease},
		{name: "agent fails, arp empty: a normal boot", answers: []answer{na(lease), gave(agent, e86), said(arp)},
			state: model.InstanceProvisioning},
		{name: "all empty", answers: []answer{said(lease), said(agent), said(arp)}, state: model.InstanceProvisioning},
		{name: "not asked beats empty: a neighbour's trouble is not this guest's silence",
			answers: []answer{na(lease), gave(agent, busy), said(arp)}, class: provider.ClassTransient,
			msg: "not asked: agent: not asked"},
		{name: "not asked and failed", answers: []answer{gave(lease, e86), gave(agent, busy), gave(arp, e86)}, class: provider.ClassTransient,
			msg: "not asked: lease: code 86: Guest agent is not responding: QEMU guest agent is not connected\n" +
				"agent: not asked\narp: code 86: Guest agent is not responding: QEMU guest agent is not connected"},
		{name: "every source failed, with a permanent code among the causes", answers: []answer{na(lease), gave(agent, e8), gave(arp, e88)},
			class: provider.ClassTransient, msg: "every address source failed: agent: code 8: invalid argument\narp: code 88: access denied"},
		{name: "no source applies", answers: []answer{na(lease), na(agent), na(arp)}, class: provider.ClassTransient,
			msg: "no address source applies to this domain"},
		{name: "the agent is believed before lease and arp",
			answers: []answer{said(lease, "10.0.0.6"), said(agent, "10.0.0.5"), said(arp, "10.0.0.7")},
			state:   model.InstanceRunning, addr: "10.0.0.5", won: agent},
		{name: "the lease before arp", answers: []answer{said(lease, "10.0.0.6"), gave(agent, e86), said(arp, "10.0.0.7")},
			state: model.InstanceRunning, addr: "10.0.0.6", won: lease},
		{name: "the hint wins while it is named and the agent is silent", hint: "10.0.0.7",
			answers: []answer{said(lease, "10.0.0.6"), gave(agent, e86), said(arp, "10.0.0.7")},
			state:   model.InstanceRunning, addr: "10.0.0.7", won: arp},
		{name: "the hint wins when the agent names it too", hint: "10.0.0.7",
			answers: []answer{said(lease, "10.0.0.6"), said(agent, "10.0.0.5", "10.0.0.7")},
			state:   model.InstanceRunning, addr: "10.0.0.7", won: agent},
		{name: "the hint loses when the agent answers without it", hint: "10.0.0.7",
			answers: []answer{said(lease, "10.0.0.7"), said(agent, "10.0.0.5")},
			state:   model.InstanceRunning, addr: "10.0.0.5", won: agent},
		{name: "a hint that nobody names is nothing", hint: "10.0.0.9", answers: []answer{said(arp, "10.0.0.7")},
			state: model.InstanceRunning, addr: "10.0.0.7", won: arp},
		{name: "a hint alone is no address", hint: "10.0.0.9", answers: []answer{said(arp)}, state: model.InstanceProvisioning},
		{name: "IPv4 is preferred", answers: []answer{said(agent, "2001:db8::5", "10.0.0.5")},
			state: model.InstanceRunning, addr: "10.0.0.5", won: agent},
		{name: "IPv6 is preferred if so set", prefer: FamilyIPv6, answers: []answer{said(agent, "10.0.0.5", "2001:db8::5")},
			state: model.InstanceRunning, addr: "2001:db8::5", won: agent},
		{name: "the other family is better than none", answers: []answer{said(agent, "2001:db8::5")},
			state: model.InstanceRunning, addr: "2001:db8::5", won: agent},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var hint netip.Addr
			if tt.hint != "" {
				hint = addr(tt.hint)
			}
			j, err := judge(tt.answers, hint, tt.prefer)
			if got := provider.Classify(err); got != tt.class {
				t.Errorf("class %v, want %v (%v)", got, tt.class, err)
			}
			if err != nil {
				if !errors.Is(err, provider.ErrTransient) {
					t.Errorf("a failed read must be marked transient explicitly: %v", err)
				}
				if err.Error() != tt.msg {
					t.Errorf("message\n%s\nwant\n%s", err, tt.msg)
				}
				return
			}
			got := ""
			if j.address.IsValid() {
				got = j.address.String()
			}
			if j.state != tt.state || got != tt.addr || (tt.addr != "" && j.won != tt.won) {
				t.Errorf("got %v %s by %v, want %v %s by %v", j.state, got, j.won, tt.state, tt.addr, tt.won)
			}
		})
	}
}

func TestUsable(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.5": "", "192.168.1.1": "", "172.17.0.1": "", "2001:db8::1": "", "fd00::1": "",
		"127.0.0.1": "loopback", "::1": "loopback", "169.254.3.4": "link-local", "fe80::1": "link-local",
		"224.0.0.1": "multicast", "ff02::1": "multicast", "0.0.0.0": "unspecified", "::": "unspecified",
		"0.0.0.1": "of no host (0.0.0.0/8)", "0.255.255.255": "of no host (0.0.0.0/8)", "1.0.0.0": "",
		"255.255.255.255": "broadcast", "240.0.0.1": "reserved (240.0.0.0/4)", "255.255.255.254": "reserved (240.0.0.0/4)",
		"239.255.255.255": "multicast", "fec0::1": "site-local (fec0::/10)", "feff::1": "site-local (fec0::/10)",
	} {
		if got := usable(addr(text)); got != want {
			t.Errorf("usable(%s) = %q, want %q", text, got, want)
		}
	}
	if got := usable(netip.Addr{}); got != "not an address" {
		t.Errorf("usable(zero) = %q", got)
	}
}

func TestParseMAC_comparesBytes(t *testing.T) {
	want, _ := parseMAC("52:54:00:ab:cd:ef")
	for _, s := range []string{"52:54:00:AB:CD:EF", "52-54-00-ab-cd-ef", "525400ABCDEF", " 52:54:00:ab:cd:ef\n"} {
		got, ok := parseMAC(s)
		if !ok || got.String() != want.String() {
			t.Errorf("parseMAC(%q) = %v, %v", s, got, ok)
		}
	}
	for _, s := range []string{"", "52:54:00:ab:cd", "52540000abcdefg0", "zz5400abcdef", "52:54:00:ab:cd:ef:00:01"} {
		if got, ok := parseMAC(s); ok {
			t.Errorf("parseMAC(%q) = %v, want none", s, got)
		}
	}
}
