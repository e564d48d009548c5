package provider

import (
	"context"

	"virdeck/model"
)

// Build asks for the VM of a managed proxy. Its domain name, UUID and
// MAC follow from Owner alone, so that two calls for one owner mean the same VM.
type Build struct {
	Owner    model.Owner // Phase is the provider's own and ignored here
	Spec     model.BuildSpec
	Takeover bool // a mark of this fleet by another controller is rewritten instead of refused
}

// Deletion asks for the removal of a managed VM with its volumes.
type Deletion struct {
	Owner   model.Owner // Fleet, UID and Controller must be those of the domain's mark
	Domain  string
	Storage string // pool of its volumes, for a domain whose XML does not name them any more
}

// Builder makes, removes and marks VMs. Every call is idempotent: after a crash
// or an error at any point the same call goes on where the last one stopped.
// progress, if not nil, is told of each step and of bytes; it must not block.
//
// Errors, beside the context's own: ErrTransient (try again); ErrConflict
// (something of that name or UUID is there, and is not ours); ErrPermanent (the
// host refuses the spec, in libvirt's words); ErrUnsupported.
type Builder interface {
	// Identity returns what the VM of an owner is called, without asking the
	// host. It follows from Fleet, Proxy and UID alone.
	Identity(o model.Owner) Built
	// Create returns the UUID and domain name of a VM that is defined, has its
	// volumes, runs, and starts with its host.
	Create(ctx context.Context, b Build, progress func(model.Progress)) (Built, error)
	// Delete returns when nothing of the VM is left. A domain that is not there
	// is a success; one whose mark is another's is ErrConflict.
	Delete(ctx context.Context, d Deletion, progress func(model.Progress)) error
	// SetOwner marks an existing domain as ours. Its configuration is otherwise
	// left as it is.
	SetOwner(ctx context.Context, domain string, o model.Owner) error
	// ClearOwner takes this fleet's mark away and leaves the domain as it is.
	ClearOwner(ctx context.Context, domain string, o model.Owner) error
	// Recover reads port and credentials back from the seed of a managed VM, for
	// a controller whose store is gone.
	Recover(ctx context.Context, domain string) (model.BuildSpec, error)
}

// Built is what Create made or found.
type Built struct {
	Domain string
	UUID   string
	MAC    string // lower case, with colons
}
