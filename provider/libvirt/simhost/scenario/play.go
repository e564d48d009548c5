package scenario

import (
	"context"
	"log/slog"
	"slices"
	"time"
)

// Play plays the steps, each at its time from now, until the last has ended or
// the context does; a scenario that repeats begins anew after each round. Each
// step is a line in the log, with an error where it could not be done. At one
// time, what ends comes before what begins.
func (st *Stage) Play(ctx context.Context, log *slog.Logger) {
	p := player{st: st, log: log, begin: time.Now()}
	for round := 0; ; round++ {
		from := time.Duration(round) * st.scenario.Repeat
		for i := range st.scenario.steps {
			s := &st.scenario.steps[i]
			if !p.until(ctx, from+s.At) {
				return
			}
			log.Info("scenario", "step", s.text())
			end, err := s.action.run(st, s)
			if err != nil {
				log.Error("scenario", "step", s.text(), "error", err)
			}
			if end != nil && s.For > 0 {
				p.later(from+s.At+s.For, s, end)
			}
		}
		if st.scenario.Repeat == 0 {
			break
		}
	}
	p.until(ctx, 1<<62) // what is still to end
}

// player is a scenario under way.
type player struct {
	st      *Stage
	log     *slog.Logger
	begin   time.Time
	pending []ending // by time
}

// ending is the end of a step that lasts.
type ending struct {
	at  time.Duration
	s   *step
	end func() error
}

func (p *player) later(at time.Duration, s *step, end func() error) {
	i, _ := slices.BinarySearchFunc(p.pending, at, func(e ending, at time.Duration) int {
		if e.at <= at {
			return -1
		}
		return 1
	})
	p.pending = slices.Insert(p.pending, i, ending{at, s, end})
}

// until waits for a time of the scenario, and ends on the way what has to end.
// Without anything left to wait for it returns before an endless time. It
// reports whether the context goes on.
func (p *player) until(ctx context.Context, at time.Duration) bool {
	for len(p.pending) > 0 && p.pending[0].at <= at {
		e := p.pending[0]
		p.pending = p.pending[1:]
		if !p.wait(ctx, e.at) {
			return false
		}
		p.log.Info("scenario", "over", e.s.text())
		if err := e.end(); err != nil {
			p.log.Error("scenario", "over", e.s.text(), "error", err)
		}
	}
	return at == 1<<62 || p.wait(ctx, at)
}

func (p *player) wait(ctx context.Context, at time.Duration) bool {
	t := time.NewTimer(time.Until(p.begin.Add(at)))
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
