package libvirt

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"virdeck/model"
)

// serveAgent serves an ssh agent's socket, which it names in the environment, and
// keeps every key of the home directory out.
func serveAgent(t *testing.T, serve func(net.Conn)) {
	t.Helper()
	sock := filepath.Join(t.TempDir(), "agent")
	ln, err := net.Listen("unix", sock)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSH_AUTH_SOCK", sock)
	t.Setenv("HOME", t.TempDir())
	accept(t, ln, serve)
}

// keyring has the client's key.
func (s *sshd) keyring(t *testing.T) agent.Agent {
	t.Helper()
	b, err := os.ReadFile(s.key)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.ParseRawPrivateKey(b)
	if err != nil {
		t.Fatal(err)
	}
	ring := agent.NewKeyring()
	if err := ring.Add(agent.AddedKey{PrivateKey: key}); err != nil {
		t.Fatal(err)
	}
	return ring
}

// touch is an agent whose keys wait for their owner.
type touch struct {
	agent.Agent
	owner <-chan struct{}
}

func (a touch) Sign(ssh.PublicKey, []byte) (*ssh.Signature, error) {
	<-a.owner
	return nil, errors.New("not touched")
}

func (a touch) SignWithFlags(k ssh.PublicKey, b []byte, _ agent.SignatureFlags) (*ssh.Signature, error) {
	return a.Sign(k, b)
}

func (touch) Extension(string, []byte) ([]byte, error) { return nil, agent.ErrExtensionUnsupported }

// An agent that hangs, when it is asked for its keys or when it is to sign, ends
// with the dial's time.
func TestDial_sshAgentHangs(t *testing.T) {
	sim, _ := simSocket(t)
	s := newSSHD(t, sim, "/s")
	ring := s.keyring(t)
	owner := make(chan struct{})
	defer close(owner)
	for name, tt := range map[string]struct {
		serve func(net.Conn)
		want  string
	}{
		"asked for its keys": {func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }, "ask the agent for its keys"},
		"waits for a touch":  {func(c net.Conn) { _ = agent.ServeAgent(touch{ring, owner}, c) }, "handshake (a key of the agent may wait for its owner)"},
	} {
		t.Run(name, func(t *testing.T) {
			serveAgent(t, tt.serve)
			e := Endpoint{Transport: TransportSSH, Address: s.addr, User: "u", KnownHosts: s.hosts, Sockets: []string{"/s"}}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			start := time.Now()
			_, err := e.dialSSH(ctx)
			if want := "ssh " + s.addr + ": " + tt.want + ": context deadline exceeded"; errText(err) != want || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v, want %s", err, want)
			}
			if took := time.Since(start); took > 6*time.Second {
				t.Errorf("after %s", took)
			}
			// The link says so too, and obeys its operator.
			l := NewLink(LinkOptions{Host: "h", Dial: e.Dialer(), DialTimeout: time.Second})
			if err := version(t.Context(), l); errText(err) != "link down: ssh "+s.addr+": "+tt.want+": context deadline exceeded" {
				t.Error(err)
			}
			if st := l.Status(); st.State == model.LinkUp {
				t.Errorf("%v", st.State)
			}
			l.Close()
		})
	}
}

// An agent that answers is used, and its connection closed after the handshake.
func TestDial_sshAgent(t *testing.T) {
	sim, _ := simSocket(t)
	s := newSSHD(t, sim, "/s")
	ring := s.keyring(t)
	closed := make(chan struct{}, 10)
	serveAgent(t, func(c net.Conn) {
		_ = agent.ServeAgent(ring, c) // until it is closed
		closed <- struct{}{}
	})
	e := Endpoint{Transport: TransportSSH, Address: s.addr, User: "u", KnownHosts: s.hosts, Sockets: []string{"/s"}}
	if err := answers(t, e); err != nil {
		t.Fatal(err)
	}
	select {
	case <-closed:
	case <-time.After(5 * time.Second):
		t.Error("the connection to the agent is still open")
	}
}
