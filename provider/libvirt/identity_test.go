package libvirt

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"virdeck/model"
)

// What is derived once is in stores and on hosts for ever.
func TestIdentify(t *testing.T) {
	const domain, uuid, mac = "home-p-01-d02762", "cc8d8cce-646f-55bb-9346-96d0ac16c160", "52:54:00:94:7b:26"
	tests := []struct {
		name              string
		o                 model.Owner
		domain, uuid, mac string
	}{
		{"plain", model.Owner{Fleet: "home", Proxy: "p-01", UID: "0190c1a2"}, domain, uuid, mac},
		{"what does not count", model.Owner{Fleet: "home", Proxy: "p-01", UID: "0190c1a2", Controller: "c", SpecHash: "s", Pool: "p", Phase: model.PhaseReady}, domain, uuid, mac},
		{"another name, the same proxy", model.Owner{Fleet: "home", Proxy: "q", UID: "0190c1a2"}, "home-q-d02762", uuid, mac},
		{"another uid", model.Owner{Fleet: "home", Proxy: "p-01", UID: "0190c1a3"}, "home-p-01-68d792", "211be4d7-4efc-567b-aee8-68f8bda64827", "52:54:00:46:aa:f7"},
		{"another fleet", model.Owner{Fleet: "work", Proxy: "p-01", UID: "0190c1a2"}, "work-p-01-e580e7", "7b53491e-25bf-5541-ac30-7ac09cc05980", "52:54:00:f7:c0:ee"},
		{"where one ends and the other begins", model.Owner{Fleet: "home0", Proxy: "p-01", UID: "190c1a2"}, "home0-p-01-ec594b", "42f38447-9c27-5f96-ab6a-7ddbb4d004db", "52:54:00:5a:6a:7d"},
		{"hostile", model.Owner{Fleet: "../etc", Proxy: "a b/ü\x1b[31m", UID: "u"}, "_._etc-a_b____31m-2b35b2", "e746b4a2-d51a-5d02-bfaf-8d85bfaffc55", "52:54:00:a6:78:81"},
		{"empty", model.Owner{}, "x-x-90d44c", "634f9460-0ec9-524c-b004-94b963e5f539", "52:54:00:24:f7:59"},
	}
	for _, tt := range tests {
		id := identify(tt.o)
		if id.domain != tt.domain || formatUUID(id.uuid) != tt.uuid || id.mac != tt.mac || id.overlay != tt.domain+".qcow2" || id.seed != tt.domain+"-seed.iso" {
			t.Errorf("%s: %s, %s, %s, %s, %s", tt.name, id.domain, formatUUID(id.uuid), id.mac, id.overlay, id.seed)
		}
	}
}

// Whatever the names are, the results fit where they go.
func TestIdentify_fits(t *testing.T) {
	name := regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,59}$`)
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	mac := regexp.MustCompile(`^52:54:00(:[0-9a-f]{2}){3}$`)
	seen := map[string]string{}
	for _, fleet := range []string{"home", "work", "", "../etc", "-x", ".x", strings.Repeat("f", 99), "ü", "a/b", "a\x00b"} {
		for _, proxy := range []model.ProxyName{"p-01", "p-02", "", "p 01", "-", model.ProxyName(strings.Repeat("é", 200))} {
			for i := range 20 {
				o := model.Owner{Fleet: fleet, Proxy: proxy, UID: fmt.Sprintf("uid-%d-%s", i, proxy)}
				id := identify(o)
				if !name.MatchString(id.domain) || !uuid.MatchString(formatUUID(id.uuid)) || !mac.MatchString(id.mac) {
					t.Errorf("%q %q: domain %q, UUID %s, MAC %s", fleet, proxy, id.domain, formatUUID(id.uuid), id.mac)
				}
				who := fleet + "\x00" + o.UID
				for _, key := range []string{id.domain, formatUUID(id.uuid), id.overlay, id.seed} {
					if was, dup := seen[key]; dup && was != who {
						t.Errorf("%q is of %q and of %q", key, was, who)
					}
					seen[key] = who
				}
			}
		}
	}
}
