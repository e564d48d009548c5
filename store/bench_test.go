package store

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"virdeck/model"
)

// typical is a proxy as a fleet has it, with 20 events.
func typical(name string, n int) Proxy {
	p := Proxy{
		Name: model.ProxyName(name), UID: "6f1c6f2e-0000-4000-8000-000000000001", CreatedAt: time.Unix(1, 0), Backing: model.BackingManaged,
		Host: "beelink", Pool: "default", Template: "small", SpecHash: strconv.Itoa(n), Domain: "virdeck-" + name,
		UUID: "4f1c6f2e-0000-4000-8000-000000000001", MAC: "52:54:00:01:02:03", Incarnation: "4f1c/7", InRotation: true,
		Creds: model.Credentials{User: "u", Password: "0123456789abcdef"},
	}
	for i := range 20 {
		p.Events = append(p.Events, model.Event{Seq: uint64(i), At: time.Unix(int64(i), 0), Host: "beelink", Proxy: p.Name,
			From: "ready", To: "demoted", What: "3 probes failed", Evidence: []string{"connection refused"}})
	}
	return p
}

func BenchmarkApply(b *testing.B) {
	for _, records := range []int{1, 100} {
		b.Run(fmt.Sprintf("records=%d", records), func(b *testing.B) {
			f := mustOpen(b, at(b))
			n := 0
			for b.Loop() {
				n++
				changes := make([]Change, records)
				for i := range changes {
					changes[i] = PutProxy(typical(fmt.Sprintf("p-%03d", i), n))
				}
				mustApply(b, f, changes...)
			}
		})
	}
}

// 32 goroutines that write one record each: what meets shares a transaction.
func BenchmarkApply_atOnce(b *testing.B) {
	f := mustOpen(b, at(b))
	n := 0
	for b.Loop() {
		n++
		var wg sync.WaitGroup
		for i := range 32 {
			wg.Go(func() { mustApply(b, f, PutProxy(typical(fmt.Sprintf("p-%03d", i), n))) })
		}
		wg.Wait()
	}
}

func BenchmarkLoad(b *testing.B) {
	f := mustOpen(b, at(b))
	changes := make([]Change, 10_000)
	for i := range changes {
		changes[i] = PutProxy(typical(fmt.Sprintf("p-%05d", i), i))
	}
	mustApply(b, f, changes...)
	b.ReportAllocs()
	for b.Loop() {
		if s := mustLoad(b, f); len(s.Proxies) != len(changes) {
			b.Fatalf("%d proxies", len(s.Proxies))
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	path := at(b)
	f := mustOpen(b, path)
	changes := make([]Change, 10_000)
	for i := range changes {
		changes[i] = PutProxy(typical(fmt.Sprintf("p-%05d", i), i))
	}
	mustApply(b, f, changes...)
	mustClose(b, f)
	for b.Loop() {
		mustClose(b, mustOpen(b, path))
	}
}
