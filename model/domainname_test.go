package model

import "testing"

func TestMadeFor(t *testing.T) {
	for _, fleet := range []string{"home", "a.b-c", "a-fleet-with-a-very-long-name"} {
		for _, proxy := range []ProxyName{"p-01", "web-12", "x"} {
			if got, ok := MadeFor(fleet, DomainName(fleet, proxy, "-0a1b2c")); got != proxy || !ok {
				t.Errorf("fleet %s: %s, %v; want %s", fleet, got, ok, proxy)
			}
		}
	}
	for domain, want := range map[string]ProxyName{
		"home-web-1-0a1b2c": "web-1", "home-a-123456": "a",
		"home-web-1-0a1b2": "", "home-web-1-0A1B2C": "", "home-web-1-0a1b2g": "", "home-web-10a1b2c": "", "work-web-1-0a1b2c": "",
		"home--0a1b2c": "", "home-0a1b2c": "", "home": "", "": "", "xhome-web-1-0a1b2c": "",
	} {
		if got, ok := MadeFor("home", domain); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %v; want %q", domain, got, ok, want)
		}
	}
}
