package controller

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"virdeck/provider"
)

func TestWords(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("host kvm2: domain p-06: list domains: %w", fmt.Errorf("%w: dial unix: connection refused", provider.ErrLinkDown)), "link down: dial unix: connection refused"},
		{fmt.Errorf("host kvm2: domain p-06: %w", provider.Transient("every address source failed", errors.New("agent: code 86: not up"))),
			"every address source failed: agent: code 86: not up"},
		{fmt.Errorf("host kvm2: %w", provider.ErrNotAsked), "not asked"},
		{fmt.Errorf("host h: domain d: %w", context.DeadlineExceeded), "the read overran its budget"},
	} {
		if got := words(tt.err); got != tt.want {
			t.Errorf("words(%v) = %q, want %q", tt.err, got, tt.want)
		}
	}
}
