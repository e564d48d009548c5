package scenario

import (
	"slices"
	"testing"
)

// A pool is what is to be declared; its hosts have what its VMs are made of.
func TestPools(t *testing.T) {
	s := parse(t, small+"[[host]]\nname = \"kvm3\"\n[[pool]]\nname = \"web\"\nhosts = [\"kvm1\", \"kvm3\"]\ncount = 2\nport = 8080\n[[pool]]\nname = \"all\"\ncount = 1\n", nil)
	st := s.Build()
	defer func() { _ = st.Close() }() // in memory
	got := st.Pools()
	if len(got) != 2 || got[0].Name != "web" || !slices.Equal(got[0].Hosts, []string{"kvm1", "kvm3"}) || got[0].Count != 2 || got[0].Port != 8080 || got[0].Network != "default" {
		t.Errorf("%+v", got)
	}
	if all := got[1]; !slices.Equal(all.Hosts, []string{"kvm1", "kvm2", "kvm3"}) || all.Port != 3128 {
		t.Errorf("%+v", all)
	}
	for _, h := range st.Hosts() {
		if v, ok := st.Host(h).Volume("default", BaseVolume); !ok || v.Format != "qcow2" || v.Capacity == 0 {
			t.Errorf("host %s has no base image: %+v", h, v)
		}
	}
	on := parse(t, "[[step]]\nat = \"1s\"\nwhat = \"freeze\"\nwhom = \"kvm2\"\n", s).Build()
	defer func() { _ = on.Close() }() // in memory
	if len(on.Pools()) != 2 {
		t.Errorf("a story on the hosts of another: %+v", on.Pools())
	}
	bare := parse(t, small, nil).Build()
	defer func() { _ = bare.Close() }() // in memory
	if vs := bare.Host("kvm1").Volumes("default"); len(bare.Pools()) > 0 || len(vs) > 0 {
		t.Errorf("without a pool: %+v, %+v", bare.Pools(), vs)
	}
}

func badPools() []wrong {
	return []wrong{
		{"pools", small + "[[pool]]\nname = \"a/b\"\nhosts = [\"kvm1\", \"kvm3\"]\ncount = 0\nport = 70000\nnetwork = \"x\"\ndelay = \"-1s\"\n[[pool]]\nname = \"web\"\ncount = 1\n[[pool]]\nname = \"web\"\ncount = 201\n", []string{
			`x.toml:10: pool 1: name: "a/b" has a / or a *`,
			`x.toml:11: pool 1: hosts: unknown host "kvm3"; did you mean "kvm1"?`,
			`x.toml:12: pool 1: count: 0 is out of range; allowed: 1 to 200`,
			`x.toml:13: pool 1: port: 70000 is out of range; allowed: 1 to 65535`,
			`x.toml:14: pool 1: network: host "kvm1" has no network "x"`,
			`x.toml:15: pool 1: delay: -1s is out of range; allowed: zero or more`,
			`x.toml:20: pool 3: name: "web" is declared twice`,
			`x.toml:21: pool 3: count: 201 is out of range; allowed: 1 to 200`,
		}},
		{"a pool without hosts", "[[pool]]\nname = \"web\"\ncount = 1\n", []string{"x.toml:1: pool 1: there is no [[host]] for it"}},
	}
}
