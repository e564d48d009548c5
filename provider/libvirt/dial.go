package libvirt

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Dialer returns the function that makes connections to the endpoint.
func (e Endpoint) Dialer() DialFunc {
	switch e.Transport {
	case TransportUnix:
		return e.dialUnix
	case TransportTCP:
		return e.dialTCP
	case TransportTLS:
		return e.dialTLS
	case TransportSSH:
		return e.dialSSH
	}
	return func(context.Context) (net.Conn, error) {
		return nil, fmt.Errorf("transport %q has no dialer", e.Transport)
	}
}

// dialUnix tries the sockets in turn. One that is not there, or at which nobody
// listens, gives way to the next: a daemon leaves its socket behind when it is
// removed or killed. One that refuses for another reason is the daemon that we
// want.
func (e Endpoint) dialUnix(ctx context.Context) (net.Conn, error) {
	var errs []error
	for _, path := range e.Sockets {
		var d net.Dialer
		c, err := d.DialContext(ctx, "unix", path)
		if err == nil {
			return c, nil
		}
		errs = append(errs, err)
		if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ECONNREFUSED) {
			break
		}
	}
	return nil, oneLine(errs)
}

// oneLine joins errors of several tries for a screen's one line.
func oneLine(errs []error) error {
	err := errs[0]
	for _, e := range errs[1:] {
		err = fmt.Errorf("%w; then %w", err, e)
	}
	return err
}

// userTimeout bounds how long sent bytes may stay unacknowledged. Without it a
// partition that drops packets is not noticed by the kernel within minutes.
const userTimeout = 10 * time.Second

func (e Endpoint) dialTCP(ctx context.Context) (net.Conn, error) {
	d := net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3},
		Control: func(_, _ string, rc syscall.RawConn) error {
			var serr error
			err := rc.Control(func(fd uintptr) {
				serr = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(userTimeout.Milliseconds()))
			})
			return errors.Join(err, serr)
		},
	}
	return d.DialContext(ctx, "tcp", e.Address)
}
