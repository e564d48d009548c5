package libvirt

import (
	"context"
	"errors"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"

	"virdeck/provider"
)

// identifyLimit is how long a host may take to say which machine it is. The
// capabilities can take seconds: the daemon may probe its emulators for them.
const identifyLimit = 30 * time.Second

// identify asks which machine this generation speaks to, until it is known.
func (h *Host) identify(l *Link, s *session) {
	q := newLone(nil)
	known := func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.uuidGen == s.gen
	}
	ask := func() error { return h.readUUID(l, s, q) }
	err := ask()
	if err == nil || persist(s, q, err, known, ask) {
		h.opts.OnEvent(provider.Event{Host: h.name, What: provider.EventIdentified})
	}
}

// readUUID returns nil when the host has said its UUID; it may still say it
// after an error.
func (h *Host) readUUID(l *Link, s *session, q lone) error {
	ctx, cancel := context.WithTimeout(s.ctx, identifyLimit)
	defer cancel()
	_, err := onLone(ctx, l, s, q, call{Class: ClassRead, What: "read capabilities"},
		func(v *golibvirt.Libvirt) (struct{}, error) {
			text, err := v.ConnectGetCapabilities()
			if err == nil {
				h.learnUUID(s, text)
			}
			return struct{}{}, err
		})
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.uuidGen != s.gen {
		return errors.New("its capabilities name no UUID")
	}
	return nil
}

func (h *Host) learnUUID(s *session, capabilities string) {
	u, err := hostUUID(capabilities)
	if err != nil || u == "" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.uuidGen < s.gen {
		h.uuid, h.uuidGen = u, s.gen
	}
}

// The pauses of persist.
const (
	persistFirst   = 2 * time.Second
	persistLongest = time.Minute
)

// persist goes on with an attempt that has failed once, with err, until done or
// until the generation ends, and reports which. The pauses grow. A call that an
// attempt has given up is waited for, however long it takes: its answer may come
// yet, and a second one would take another slot for nothing. What the host cannot
// do at all is not tried again.
func persist(s *session, q lone, err error, done func() bool, attempt func() error) bool {
	for pause := persistFirst; ; pause = min(2*pause, persistLongest) {
		if !q.free(s) {
			return false
		}
		if done() {
			return true
		}
		if errors.Is(err, provider.ErrUnsupported) || provider.Classify(err) == provider.ClassUnsupported {
			return false
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-s.dead():
			t.Stop()
			return false
		}
		if err = attempt(); err == nil {
			return true
		}
	}
}
