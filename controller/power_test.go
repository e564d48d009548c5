package controller

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"virdeck/model"
	"virdeck/provider/libvirt/simhost"
)

// However many are asked for at once, each has its time from when its turn comes.
func TestPower_waitingCostsNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.host("one")
		for i := range 40 {
			f.guest("one", simhost.DomainSpec{Name: fmt.Sprintf("p-%d", i), Running: true, ShutdownTakes: 9 * time.Second, NICs: bridge(fmt.Sprintf("10.0.0.%d", 21+i))})
		}
		f.start()
		f.within(time.Minute, "all in", f.allIn)
		var ids []model.OpID
		for i := range 40 {
			ids = append(ids, f.submit(model.Command{Verb: model.VerbStop, Host: "one", Proxy: model.ProxyName(fmt.Sprintf("p-%d", i))}))
		}
		for _, id := range ids {
			if op := f.ended(id, 3*time.Minute); op.State != model.OpDone {
				t.Errorf("%+v", op)
			}
		}
	})
}
