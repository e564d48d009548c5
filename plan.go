package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"virdeck/model"
	"virdeck/ui"
)

// plan prints what the running virdeck would do, or with none running, what one
// would that started now.
func plan(ctx context.Context, f flags, w, stderr io.Writer) error {
	st, err := current(ctx, f, stderr)
	if err != nil {
		return err
	}
	return printPlan(w, st)
}

func printPlan(w io.Writer, st model.Status) error {
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for _, n := range st.Notices {
		_, _ = fmt.Fprintln(tw, "!", ui.Clean(n))
	}
	for _, p := range st.Pools {
		_, _ = fmt.Fprintf(tw, "pool %s\t%d of %d there, %d in rotation\tbudget %d of %d used\n",
			ui.Clean(p.Name), p.Members, p.Declared, p.InRotation, p.Budget.Used, p.Budget.Of)
		for _, why := range p.Wait {
			_, _ = fmt.Fprintf(tw, "  waits\t%s\n", ui.Clean(why))
		}
	}
	waits := false
	for _, p := range st.Pools {
		waits = waits || len(p.Wait) > 0
	}
	if len(st.Plan) == 0 && !waits {
		_, _ = fmt.Fprintln(tw, "nothing to do: everything is as it is declared, as far as its hosts have said")
	}
	for _, it := range st.Plan {
		what := it.Proxy
		if what == "" {
			what = it.Domain
		}
		now := it.Wait
		switch {
		case it.Write != nil:
			now = "under way: " + it.Write.Step
		case now == "":
			now = "due"
		}
		_, _ = fmt.Fprintf(tw, "%s\t%s\ton %s\t%s\t%s\n", it.Verb, ui.Clean(what), ui.Clean(it.Host), ui.Clean(it.Why), ui.Clean(now))
	}
	return tw.Flush()
}
