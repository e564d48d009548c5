package config

import (
	"crypto/subtle"
	"log/slog"
)

// hidden stands where a secret would have been printed.
const hidden = "(secret)"

// Secret is a password that does not print itself: not with any verb of fmt,
// not in a log record, not as JSON or TOML, and not as part of another struct.
// The zero value is no secret. Copies are cheap and share the value, which
// nobody can change.
//
// The value sits behind a pointer on purpose: fmt cannot call methods on an
// unexported field, but prints a pointer in there as an address.
type Secret struct{ value *string }

// NewSecret hides value; the empty string is no secret.
func NewSecret(value string) Secret {
	if value == "" {
		return Secret{}
	}
	return Secret{value: &value}
}

// Reveal gives the value, for the one place that sends it.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// IsSet tells whether there is a secret.
func (s Secret) IsSet() bool { return s.value != nil }

// Equal compares the values, in constant time for equal lengths.
func (s Secret) Equal(o Secret) bool {
	return s.IsSet() == o.IsSet() &&
		subtle.ConstantTimeCompare([]byte(s.Reveal()), []byte(o.Reveal())) == 1
}

// String says that there is a secret, never which.
func (s Secret) String() string {
	if !s.IsSet() {
		return ""
	}
	return hidden
}

// GoString is String, for %#v.
func (s Secret) GoString() string { return s.String() }

// LogValue is String, for slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText is String, for JSON, TOML and the like.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
