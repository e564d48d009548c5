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
// (direct-streamlocal@openssh.com). When ctx ends, the TCP connection is closed,
// which ends every step.
func (e Endpoint) dialSSH(ctx context.Context) (net.Conn, error) {
	cfg, done, err := e.sshConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("ssh %s: %w", e.Address, err)
	}
	defer done()
	tcp, err := e.dialTCP(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = tcp.Close() })
	conn, chans, reqs, err := ssh.NewClientConn(tcp, e.Address, cfg)
	if err != nil {
		stop()
		_ = tcp.Close()
		return nil, fmt.Errorf("ssh %s: %w", e.Address, errors.Join(ctx.Err(), err))
	}
	client := ssh.NewClient(conn, chans, reqs)
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
	return nil, fmt.Errorf("ssh %s: open the daemon's socket (the server needs AllowStreamLocalForwarding yes): %w",
		e.Address, oneLine(errs))
}

func (e Endpoint) sshConfig(ctx context.Context) (*ssh.ClientConfig, func(), error) {
	hostKey, err := e.hostKeyCallback()
	if err != nil {
		return nil, nil, err
	}
	auth, done, err := e.sshAuth(ctx)
	if err != nil {
		return nil, nil, err
	}
	return &ssh.ClientConfig{User: e.User, Auth: auth, HostKeyCallback: hostKey}, done, nil
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
// usual files.
func (e Endpoint) sshAuth(ctx context.Context) ([]ssh.AuthMethod, func(), error) {
	if e.KeyFile != "" {
		s, err := readKey(e.KeyFile)
		if err != nil {
			return nil, nil, err
		}
		return []ssh.AuthMethod{ssh.PublicKeys(s)}, func() {}, nil
	}
	var signers []ssh.Signer
	for _, name := range []string{"id_ed25519", "id_ecdsa", "id_rsa"} {
		if s, err := readKey(homeFile(".ssh", name)); err == nil {
			signers = append(signers, s)
		}
	}
	done := func() {}
	if sock := os.Getenv("SSH_AUTH_SOCK"); sock != "" {
		var d net.Dialer
		if c, err := d.DialContext(ctx, "unix", sock); err == nil {
			done = func() { _ = c.Close() } // only needed for the handshake
			if more, err := agent.NewClient(c).Signers(); err == nil {
				signers = append(more, signers...)
			}
		}
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
