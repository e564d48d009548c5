package rotation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"virdeck/model"
)

// Engine is what the API reads.
type Engine interface {
	// Snapshot returns the newest snapshot: immutable, never nil, lock-free.
	Snapshot() *model.Snapshot
}

// SocketName is the name of the API's unix socket in the state directory.
const SocketName = "virdeck.sock"

// statusPath is the API's one resource so far.
const statusPath = "/v1/status"

// Listen opens the socket in dir with mode 0600. The caller must hold the lock
// of the directory (see Lock): a socket that is already there is a leftover, and
// is replaced.
func Listen(dir string) (net.Listener, error) {
	path := filepath.Join(dir, SocketName)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("socket: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	// The directory is 0700, so nobody can come between these two.
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, fmt.Errorf("socket %s: %w", path, errors.Join(err, l.Close()))
	}
	return l, nil
}

// Serve answers on l until ctx ends.
func Serve(ctx context.Context, l net.Listener, e Engine) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+statusPath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		enc := json.NewEncoder(w)
		_ = enc.Encode(model.NewStatus(e.Snapshot())) // the client has gone
	})
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 30 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("local api: %w", err)
	}
	return nil
}

// ErrNotRunning means: no virdeck answers on the socket.
var ErrNotRunning = errors.New("no virdeck is running here")

// Fetch reads the status of the virdeck whose state directory is dir.
func Fetch(ctx context.Context, dir string) (model.Status, error) {
	path := filepath.Join(dir, SocketName)
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		},
	}}
	var st model.Status
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://virdeck"+statusPath, nil)
	if err != nil {
		return st, err
	}
	resp, err := client.Do(req)
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" && !errors.Is(err, os.ErrPermission) {
		return st, fmt.Errorf("%w: %w", ErrNotRunning, err)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return st, fmt.Errorf("the virdeck on socket %s (%s) does not answer: %w", path, holder(dir), err)
	}
	if err != nil {
		return st, fmt.Errorf("socket %s: %w", path, err)
	}
	defer func() { _ = resp.Body.Close() }() // read to its end, or given up
	if resp.StatusCode != http.StatusOK {
		return st, fmt.Errorf("socket %s: status %s", path, resp.Status)
	}
	if err := json.NewDecoder(resp.Body).Decode(&st); err != nil {
		return st, fmt.Errorf("socket %s: %w", path, err)
	}
	return st, nil
}
