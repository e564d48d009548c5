package provider

import (
	"errors"
	"fmt"
	"testing"
)

func TestClassify(t *testing.T) {
	coded := func(code int, msg string) error { return &CodedError{Code: code, Message: msg} }
	tests := []struct {
		name string
		err  error
		want Class
	}{
		{"nil", nil, ClassNone},
		{"explicit transient wins over a permanent code beneath it",
			fmt.Errorf("read: %w: %w", ErrTransient, errors.Join(coded(86, "agent"), coded(8, "arg"))), ClassTransient},
		{"explicit transient wins wherever it stands in the chain",
			errors.Join(coded(88, "access denied"), ErrTransient), ClassTransient},
		{"without an explicit class the first code decides", errors.Join(coded(86, "agent"), coded(8, "arg")), ClassTransient},
		{"first code permanent", errors.Join(coded(8, "arg"), coded(86, "agent")), ClassPermanent},
		{"not asked is transient", fmt.Errorf("agent: %w", ErrNotAsked), ClassTransient},
		{"link down is transient", fmt.Errorf("host beelink: %w", ErrLinkDown), ClassTransient},
		{"no domain", coded(42, "no domain"), ClassNotFound},
		{"missing network is not a missing domain", coded(43, "no network"), ClassTransient},
		{"missing volume is not a missing domain", coded(50, "no volume"), ClassTransient},
		{"operation failed", coded(9, "cannot do it"), ClassTransient},
		{"identity taken", coded(9, "operation failed: domain 'x' already exists with uuid 0-0"), ClassConflict},
		{"identity taken, defined", coded(9, "domain is already defined with uuid 0-0"), ClassConflict},
		{"dom exist", coded(28, ""), ClassConflict},
		{"volume exists", coded(90, ""), ClassConflict},
		{"invalid arg", coded(8, ""), ClassPermanent},
		{"access denied", coded(88, ""), ClassPermanent},
		{"no support", coded(3, ""), ClassUnsupported},
		{"no agent channel", coded(74, ""), ClassUnsupported},
		{"agent unresponsive", coded(86, ""), ClassTransient},
		{"an unknown code", coded(9999, ""), ClassTransient},
		{"no libvirt error at all", errors.New("read unix: broken pipe"), ClassTransient},
	}
	for _, tt := range tests {
		if got := Classify(tt.err); got != tt.want {
			t.Errorf("%s: Classify(%v) = %v, want %v", tt.name, tt.err, got, tt.want)
		}
	}
}

func TestCodedErrorText(t *testing.T) {
	err := fmt.Errorf("host beelink: domain p-01: agent: %w", &CodedError{Code: 86, Message: "Guest agent is not responding"})
	const want = "host beelink: domain p-01: agent: code 86: Guest agent is not responding"
	if err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}
