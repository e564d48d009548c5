package simhost

import (
	"fmt"
	"strings"

	libvirt "github.com/digitalocean/go-libvirt"
)

// An Error is what the daemon answers to a call that fails. Domain and Level do
// not reach users of the client library, but they are on the wire.
type Error struct {
	Code    libvirt.ErrorNumber
	Domain  int32 // libvirt's error domain (VIR_FROM_*)
	Level   int32 // 0 means error (2)
	Message string

	// flagsOf is the function that refuses flags; the daemon reports that
	// mistake in another form than all others.
	flagsOf string
}

// Error gives the message and the code.
func (e *Error) Error() string {
	return fmt.Sprintf("libvirt error %d: %s", e.Code, e.Message)
}

// The two messages, with code 1, with which old daemons on newer kernels fail
// to read a short ARP table (see [Host.SetARPError]).
const (
	ARPWrongLength = "internal error: wrong nlmsg len"
	ARPMalformed   = "internal error: malformed netlink response message"
)

// ARPNoBuffer is the message, with code 38, of a host whose kernel had no room
// for its answer.
const ARPNoBuffer = "nl_recv failed: No buffer space available"

// libvirt's error domains that are needed here.
const (
	fromNone    = 0
	fromRPC     = 7
	fromQEMU    = 10
	fromStorage = 18
	fromNetwork = 19
	fromDomain  = 20
	fromPolkit  = 60
)

// codeFormat is libvirt's text for an error of this code, with %s where the
// details stand.
func codeFormat(code libvirt.ErrorNumber) string {
	switch code {
	case libvirt.ErrInternalError:
		return "internal error: %s"
	case libvirt.ErrInvalidArg:
		return "invalid argument: %s"
	case libvirt.ErrOperationFailed:
		return "operation failed: %s"
	case libvirt.ErrXMLError:
		return "XML error: %s"
	case libvirt.ErrOperationDenied:
		return "operation forbidden: %s"
	case libvirt.ErrNoDomain:
		return "Domain not found: %s"
	case libvirt.ErrNoNetwork:
		return "Network not found: %s"
	case libvirt.ErrNoStoragePool:
		return "Storage pool not found: %s"
	case libvirt.ErrNoStorageVol:
		return "Storage volume not found: %s"
	case libvirt.ErrStorageVolExist:
		return "storage volume %s exists already"
	case libvirt.ErrOperationInvalid:
		return "Requested operation is not valid: %s"
	case libvirt.ErrOperationTimeout:
		return "Timed out during operation: %s"
	case libvirt.ErrArgumentUnsupported:
		return "argument unsupported: %s"
	case libvirt.ErrNoDomainMetadata:
		return "metadata not found: %s"
	case libvirt.ErrAuthFailed:
		return "authentication failed: %s"
	case libvirt.ErrAuthUnavailable:
		return "authentication unavailable: %s"
	case libvirt.ErrAgentUnresponsive:
		return "Guest agent is not responding: %s"
	default:
		return "%s"
	}
}

// fail makes an error with the details in the text of its code.
func fail(domain int32, code libvirt.ErrorNumber, format string, args ...any) *Error {
	before, after, _ := strings.Cut(codeFormat(code), "%s")
	return &Error{Code: code, Domain: domain, Message: before + fmt.Sprintf(format, args...) + after}
}

// badFlags is the error of a function that knows no flags.
func badFlags(flags uint32, function string) *Error {
	return &Error{
		Code: libvirt.ErrInvalidArg, Domain: fromQEMU, flagsOf: function,
		Message: fmt.Sprintf("unsupported flags (0x%x) in function %s", flags, function),
	}
}

// wireError is an error reply (remote_error). The texts are the format of the
// message and its details; the numbers are -1 when there are none.
type wireError struct {
	Code    int32
	Domain  int32
	Message *string
	Level   int32
	Dom     *libvirt.Domain
	Str     [3]*string
	Int     [2]int32
	Net     *libvirt.Network
}

func (e *Error) wire() wireError {
	w := wireError{Code: int32(e.Code), Domain: e.Domain, Message: &e.Message, Level: e.Level, Int: [2]int32{-1, -1}}
	if w.Level == 0 {
		w.Level = 2 // VIR_ERR_ERROR
	}
	if e.flagsOf != "" {
		what := "flags"
		w.Str, w.Int = [3]*string{&e.flagsOf, &what}, [2]int32{}
		return w
	}
	format, details := "%s", e.Message
	if before, after, _ := strings.Cut(codeFormat(e.Code), "%s"); strings.HasPrefix(e.Message, before) && strings.HasSuffix(e.Message, after) {
		format, details = codeFormat(e.Code), e.Message[len(before):max(len(before), len(e.Message)-len(after))]
	}
	w.Str = [3]*string{&format, &details}
	return w
}
