package model

import "testing"

func TestPoolSpec_names(t *testing.T) {
	p := PoolSpec{Name: "web-1"}
	if got := p.Member(12); got != "web-1-12" {
		t.Errorf("Member(12) = %s", got)
	}
	for name, want := range map[ProxyName]int{
		"web-1-1": 1, "web-1-120": 120,
		"web-1-0": 0, "web-1-01": 0, "web-1-": 0, "web-1": 0, "web-1--1": 0, "web-1-+1": 0, "web-1-1a": 0, "web-2-1": 0, "web-1-1-2": 0,
		"web-1-99999999999999999999": 0,
	} {
		got, ok := p.Ordinal(name)
		if ok != (want > 0) || ok && got != want {
			t.Errorf("Ordinal(%s) = %d, %v; want %d", name, got, ok, want)
		}
	}
}
