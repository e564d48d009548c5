package provider

import (
	"context"

	"virdeck/model"
)

// Build asks for the VM of a managed proxy. Its domain name, UUID and
// MAC follow from Owner alone, so that two calls for one owner mean the same VM.
// One that is finished is not made anew for another Spec: the SpecHash of its mark
// tells, and a new uid is the way to another VM.
type Build struct {
	Owner    model.Owner // Phase is the provider's own and ignored here
	Spec     model.BuildSpec
	Takeover bool // a mark of this fleet by another controller is rewritten instead of refused
}

// Deletion asks for the removal of a managed VM with its volumes: those that
// Create makes for this owner, and no others.
type Deletion struct {
	Owner   model.Owner // Fleet, UID and Controller must be those of the domain's mark
	Domain  string      // empty: the name that Create gives, for which Owner.Proxy is needed
	Storage string      // pool of its volumes, for a domain that is gone or does not name them
}

// Builder makes, removes and marks VMs. Every call is idempotent: after a crash
// or an error at any point the same call goes on where the last one stopped.
// progress, if not nil, is told of each step and of bytes; it must not block.
//
// They may take long: a Create as long as its base image needs to be uploaded, a
// Delete 20 s for a process that does not die. A call on a busy host waits for its
// turn; the end of its context ends the wait and nothing else. Calls for one owner
// wait for each other; those that need one base image share its upload.
//
// Errors, beside the context's own: ErrTransient (try again; what the host lacks,
// a pool, a network, room, is of this class, in libvirt's words); ErrConflict
// (something of that name or UUID is there and is not ours, or it is being
// removed); ErrPermanent (the spec cannot be, or the host refuses it, in libvirt's
// words; the local base image is not the one that was declared); ErrUnsupported.
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
	// SetOwner marks an existing domain as ours, without a phase as ready. Its
	// configuration is otherwise left as it is. A mark of another owner or
	// controller is ErrConflict, no such domain ErrNotFound.
	SetOwner(ctx context.Context, domain string, o model.Owner) error
	// ClearOwner takes this fleet's mark away and leaves the domain as it is.
	ClearOwner(ctx context.Context, domain string, o model.Owner) error
	// Recover reads host name, port and credentials back from the seed of a managed
	// VM, for a controller whose store is gone. Its errors are those of a read.
	Recover(ctx context.Context, domain string) (model.BuildSpec, error)
}

// Built is what Create made or found.
type Built struct {
	Domain string
	UUID   string
	MAC    string // lower case, with colons
}
