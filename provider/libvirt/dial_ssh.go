package libvirt

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/crypto/ssh/knownhosts"
)

// sshConn is a libvirt connection inside an SSH connection of its own. Closing
// it closes both: a channel alone would leave the TCP connection and its
// goroutines behind at every redial.
type sshConn struct {
	net.Conn // the channel to the daemon's socket
	client   *ssh.Client
	once     sync.Once
	err      error
}

func (c *sshConn) Close() error {
	c.once.Do(func() {
		// The TCP connection first: closing a channel of a dead connection
		// waits for room to say so.
		c.err = c.client.Close()
		_ = c.Conn.Close() // already gone with the client
	})
	return c.err
}

// dialSSH opens an SSH connection and, through it, the daemon's unix socket
// (direct-streamlocal@openssh.com). When ctx ends, the connections to the agent
// and to the host are closed, which ends every step; the error names the step.
func (e Endpoint) dialSSH(ctx context.Context) (net.Conn, error) {
	step := "read the keys"
	c, err := e.dialSSHSteps(ctx, func(s string) { step = s })
	switch {
	case err != nil && ctx.Err() != nil: // what its end broke says less
		return nil, fmt.Errorf("ssh %s: %s: %w", e.Address, step, ctx.Err())
	case err != nil:
		return nil, fmt.Errorf("ssh %s: %w", e.Address, err)
	}
	return c, nil
}

func (e Endpoint) dialSSHSteps(ctx context.Context, step func(string)) (net.Conn, error) {
	hostKey, err := e.hostKeyCallback()
	if err != nil {
		return nil, err
	}
	auth, done, err := e.sshAuth(ctx, step)
	if err != nil {
		return nil, err
	}
	defer done()
	step("connect")
	tcp, err := e.dialTCP(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = tcp.Close() })
	step("handshake (a key of the agent may wait for its owner)")
	cfg := &ssh.ClientConfig{User: e.User, Auth: auth, HostKeyCallback: hostKey}
	conn, chans, reqs, err := ssh.NewClientConn(tcp, e.Address, cfg)
	if err != nil {
		stop()
		_ = tcp.Close()
		return nil, err
	}
	client := ssh.NewClient(conn, chans, reqs)
	step("open the daemon's socket")
	var errs []error
	for _, path := range e.Sockets {
		ch, err := client.Dial("unix", path)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", path, err))
			continue
		}
		if !stop() { // ctx ended; the TCP connection is being closed
			_ = client.Close()
			return nil, ctx.Err()
		}
		return &sshConn{Conn: ch, client: client}, nil
	}
	stop()
	_ = client.Close()
	return nil, fmt.Errorf("open the daemon's socket (the server needs AllowStreamLocalForwarding yes): %w", oneLine(errs))
}

func (e Endpoint) hostKeyCallback() (ssh.HostKeyCallback, error) {
	if e.NoVerify {
		return ssh.InsecureIgnoreHostKey(), nil //nolint:gosec // asked for in the URI, and warned about by check
	}
	file := e.KnownHosts
	if file == "" {
		file = homeFile(".ssh", "known_hosts")
	}
	cb, err := knownhosts.New(file)
	if err != nil {
		return nil, fmt.Errorf("known hosts: %w (connect once with ssh, or name the file with known_hosts= in the uri)", err)
	}
	return cb, nil
}

// sshAuth offers the key file if one is named; else the agent's keys and the
// usual files. done closes the agent's connection, after the handshake, which
// needs it: an agent signs, and may wait for its owner before it does. So does the
// end of ctx.
func (e Endpoint) sshAuth(ctx context.Context, step func(string)) (auth []ssh.AuthMethod, done func(), err error) {
	done = func() {}
	if e.KeyFile != "" {
		s, err := readKey(e.KeyFile)
		if err != nil {
			return nil, nil, err
		}
		return []ssh.AuthMethod{ssh.PublicKeys(s)}, done, nil
	}
	var signers []ssh.Signer
	for _, name := range []string{"id_ed25519", "id_ecdsa", "id_rsa"} {
		if s, err := readKey(homeFile(".ssh", name)); err == nil {
			signers = append(signers, s)
		}
	}
	if sock := os.Getenv("SSH_AUTH_SOCK"); sock != "" {
		step("ask the agent for its keys")
		var d net.Dialer
		if c, err := d.DialContext(ctx, "unix", sock); err == nil {
			stop := context.AfterFunc(ctx, func() { _ = c.Close() })
			done = func() {
				stop()
				_ = c.Close() // it was only asked
			}
			if more, err := agent.NewClient(c).Signers(); err == nil {
				signers = append(more, signers...)
			}
		}
	}
	if err := ctx.Err(); err != nil {
		done()
		return nil, nil, err
	}
	if len(signers) == 0 {
		done()
		return nil, nil, errors.New("no key: name one with keyfile= in the uri, or start an agent")
	}
	return []ssh.AuthMethod{ssh.PublicKeys(signers...)}, done, nil
}

func readKey(path string) (ssh.Signer, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	s, err := ssh.ParsePrivateKey(b)
	if err != nil {
		return nil, fmt.Errorf("key file %s: %w", path, err)
	}
	return s, nil
}
