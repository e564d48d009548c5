package controller

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"virdeck/model"
)

// A VM that has lost its mark is nobody's to remove: who asks for it is told, and
// is not told that it is removed.
func TestOrder_deleteOfWhatIsNotOurs(t *testing.T) {
	for name, tt := range map[string]struct {
		mark func(string) string
		want string
	}{
		"no mark":   {func(string) string { return "" }, "a domain of its name is there, without virdeck's mark: it is left alone"},
		"another's": {func(m string) string { return strings.ReplaceAll(m, `"test"`, `"lab"`) }, `a domain of its name is marked by the fleet "lab": it is left alone`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newManaged(t, "a")
				f.alone()
				d := f.vm("one")
				const uri = "urn:virdeck:owner:1"
				d.SetMetadata(uri, "virdeck", tt.mark(d.Metadata(uri, false)))
				f.within(time.Minute, "said", func() bool { return strings.Contains(f.plan(), tt.want) })
				if op := f.do(on(model.VerbDelete, "one")); op.State != model.OpFailed || op.Result != tt.want {
					t.Errorf("%s %q", op.State, op.Result)
				}
				f.during(time.Minute, "it runs, and is wanted as before", func() bool { return d.ID() > 0 && f.proxy("one").Managed.Wish == "run" })
			})
		})
	}
}
