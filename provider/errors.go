package provider

import (
	"errors"
	"fmt"
	"strings"
)

// The classes of errors. An explicit class in an error's chain always wins over
// any code found in it; see Classify.
var (
	// ErrTransient: nothing may be concluded from it; try again.
	ErrTransient = errors.New("transient")
	// ErrNotFound: the object of the call does not exist, seen through a live
	// link.
	ErrNotFound = errors.New("not found")
	// ErrConflict: something of that name or identity exists and is not ours.
	ErrConflict = errors.New("conflict")
	// ErrPermanent: the same request can never work. Never from a read.
	ErrPermanent = errors.New("permanent")
	// ErrUnsupported: the host cannot do this at all.
	ErrUnsupported = errors.New("unsupported")
)

// ErrNotAsked marks a call that was refused for a reason of ours before it
// reached the host: no free slot, another operation on the same domain, or the
// caller's own deadline. It is transient, and it says nothing about the guest.
var ErrNotAsked error = &kind{"not asked", ErrTransient}

// ErrLinkDown marks a call that found no link, or whose link died under it.
var ErrLinkDown error = &kind{"link down", ErrTransient}

// kind is an error of a class whose text does not repeat the class: operators
// read these, and "transient" is on their screen already.
type kind struct {
	text  string
	class error
}

func (k *kind) Error() string { return k.text }
func (k *kind) Unwrap() error { return k.class }

// Transient returns an error that is explicitly transient, whatever codes are
// joined beneath it in cause, which may be nil.
func Transient(text string, cause error) error {
	if cause == nil {
		return &kind{text, ErrTransient}
	}
	return fmt.Errorf("%w: %w", &kind{text, ErrTransient}, cause)
}

// Class is the verdict of Classify.
type Class int

const (
	// ClassNone means: no error.
	ClassNone Class = iota
	// ClassTransient means: see ErrTransient.
	ClassTransient
	// ClassNotFound means: see ErrNotFound.
	ClassNotFound
	// ClassConflict means: see ErrConflict.
	ClassConflict
	// ClassPermanent means: see ErrPermanent.
	ClassPermanent
	// ClassUnsupported means: see ErrUnsupported.
	ClassUnsupported
)

// String returns a word for logs and counters.
func (c Class) String() string {
	switch c {
	case ClassNone:
		return "none"
	case ClassTransient:
		return "transient"
	case ClassNotFound:
		return "not-found"
	case ClassConflict:
		return "conflict"
	case ClassPermanent:
		return "permanent"
	case ClassUnsupported:
		return "unsupported"
	}
	return fmt.Sprintf("unknown-class-%d", int(c))
}

// CodedError is an error that the host itself returned, with libvirt's code
// (virErrorNumber in libvirt's virterror.h).
type CodedError struct {
	Code    int
	Message string // verbatim; may hold hostile bytes
}

// Error implements error.
func (e *CodedError) Error() string { return fmt.Sprintf("code %d: %s", e.Code, e.Message) }

// The codes that virdeck's decisions name.
const (
	CodeInternal            = 1
	CodeOperationFailed     = 9
	CodeNoDomain            = 42
	CodeNoNetwork           = 43
	CodeOperationInvalid    = 55
	CodeOperationTimeout    = 68
	CodeArgumentUnsupported = 74
	CodeAgentUnresponsive   = 86
)

// Classify turns any error into one class. The explicit classes are looked for
// first, in the order of their harmlessness: a read that has been marked
// transient stays so whatever codes are joined beneath it. Without an explicit
// class the first coded error of the chain decides; an unknown code, and every
// error that is no host's answer, is transient.
func Classify(err error) Class {
	switch {
	case err == nil:
		return ClassNone
	case errors.Is(err, ErrTransient):
		return ClassTransient
	case errors.Is(err, ErrNotFound):
		return ClassNotFound
	case errors.Is(err, ErrConflict):
		return ClassConflict
	case errors.Is(err, ErrPermanent):
		return ClassPermanent
	case errors.Is(err, ErrUnsupported):
		return ClassUnsupported
	}
	if ce, ok := errors.AsType[*CodedError](err); ok {
		return classOfCode(ce.Code, ce.Message)
	}
	return ClassTransient
}

// classOfCode is the table of virErrorNumber. Codes about objects other than
// the domain itself (a missing volume, pool or network: 50, 49, 43) are
// transient here: they are "not found" for that object alone, and whoever asks
// for it says so explicitly.
func classOfCode(code int, msg string) Class {
	switch code {
	case CodeNoDomain:
		return ClassNotFound
	case CodeOperationFailed:
		if identityTaken(msg) {
			return ClassConflict
		}
		return ClassTransient
	case 28, // DOM_EXIST
		37,  // NETWORK_EXIST
		90,  // STORAGE_VOL_EXIST
		110: // MULTIPLE_DOMAINS
		return ClassConflict
	case 8, // INVALID_ARG
		16, 17, 18, 19, 20, 21, 22, 23, // a missing or unknown part of the XML
		27, // XML_ERROR
		35, // XML_DETAIL
		44, // INVALID_MAC
		67, // CONFIG_UNSUPPORTED
		91, // CPU_INCOMPATIBLE
		92, // XML_INVALID_SCHEMA
		29, // OPERATION_DENIED
		45, // AUTH_FAILED
		79, // AUTH_CANCELLED
		88: // ACCESS_DENIED
		return ClassPermanent
	case 3, // NO_SUPPORT
		CodeArgumentUnsupported,
		84: // OPERATION_UNSUPPORTED
		return ClassUnsupported
	}
	return ClassTransient
}

// identityTaken recognises the one message that has to be matched: libvirt
// reports a name or UUID that another domain has as OPERATION_FAILED, "already
// exists with uuid" or "already defined with uuid" (virdomainobjlist.c). A
// translated daemon escapes it, so callers confirm by lookup.
func identityTaken(msg string) bool {
	m := strings.ToLower(msg)
	return strings.Contains(m, "with uuid") &&
		(strings.Contains(m, "already exists") || strings.Contains(m, "already defined"))
}
