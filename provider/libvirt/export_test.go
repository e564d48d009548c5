package libvirt

import (
	"context"

	golibvirt "github.com/digitalocean/go-libvirt"
)

// LinkCall makes the cheapest call there is through a link, for benchmarks of
// the link alone.
func LinkCall(ctx context.Context, l *Link) error {
	_, _, err := do(ctx, l, call{Class: ClassRead, What: "version"},
		func(v *golibvirt.Libvirt) (uint64, error) { return v.ConnectGetLibVersion() })
	return err
}
