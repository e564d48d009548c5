package store

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"
	"unicode/utf8"

	"virdeck/model"
)

// Change is one record to write or to remove. It holds a copy of what it was
// made from. Its value may be a secret and is never printed.
type Change struct {
	bucket, key string
	value       []byte // nil: remove
	err         error  // why it cannot be written
}

// PutProxy writes the record of a proxy, in place of the one before.
func PutProxy(p Proxy) Change {
	return put(bucketProxies, string(p.Name), func() any { return p.wire() })
}

// DeleteProxy removes the record of a proxy; none is as good.
func DeleteProxy(name model.ProxyName) Change { return remove(bucketProxies, string(name)) }

// PutAdopted writes a proxy that was declared at the console.
func PutAdopted(a Adopted) Change {
	return put(bucketAdopted, string(a.Name), func() any { return a.wire() })
}

// DeleteAdopted removes a proxy that was declared at the console; none is as
// good.
func DeleteAdopted(name model.ProxyName) Change { return remove(bucketAdopted, string(name)) }

// PinHost writes the libvirt UUID that a host had at first contact.
func PinHost(name model.HostName, uuid string) Change {
	return put(bucketHosts, string(name), func() any { return uuid })
}

// UnpinHost forgets the UUID of a host.
func UnpinHost(name model.HostName) Change { return remove(bucketHosts, string(name)) }

// PutBudget writes the times that still count against a budget, in place of
// those before. None removes the record.
func PutBudget(key BudgetKey, at []time.Time) Change {
	if len(at) == 0 {
		return remove(bucketBudget, string(key))
	}
	return put(bucketBudget, string(key), func() any { return utcAll(at) })
}

// SavedAt is the heartbeat as one change among others.
func SavedAt(now time.Time) Change {
	return put(bucketMeta, keySavedAt, func() any { return now.UTC() })
}

// String says what is changed, and not to what.
func (c Change) String() string {
	if c.value == nil && c.err == nil {
		return "remove " + c.noun()
	}
	return "write " + c.noun()
}

// Format hides the value from every verb of fmt: String alone is not asked for
// %d, which shows bytes.
func (c Change) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, c.String()) // fmt drops errors too
}

// LogValue hides the value from slog.
func (c Change) LogValue() slog.Value { return slog.StringValue(c.String()) }

func (c Change) noun() string { return recordNoun(c.bucket, c.key) }

// check returns why c cannot be written.
func (c Change) check() error {
	switch {
	case c.bucket == "":
		return errors.New("store: an empty change")
	case c.key == "":
		return fmt.Errorf("store: write %s: no name", c.noun())
	case !utf8.ValidString(c.key):
		return fmt.Errorf("store: write %s: name is not UTF-8", c.noun())
	case len(c.key) > maxKey:
		return fmt.Errorf("store: write %.32s...: name of %d bytes; allowed: %d", c.noun(), len(c.key), maxKey)
	case c.err != nil:
		return fmt.Errorf("store: write %s: %w", c.noun(), c.err)
	}
	return nil
}

func put(bucket, key string, wire func() any) Change {
	value, err := encode(wire())
	return Change{bucket: bucket, key: key, value: value, err: err}
}

func remove(bucket, key string) Change { return Change{bucket: bucket, key: key} }
