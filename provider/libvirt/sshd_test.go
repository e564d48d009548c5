package libvirt

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"virdeck/provider/libvirt/simhost"
)

// sshd is a server that forwards streamlocal channels to the simulated daemon.
type sshd struct {
	addr  string
	hosts string // its known_hosts line
	key   string // the client's private key file
}

func newSSHD(t *testing.T, sim *simhost.Host, path string) *sshd {
	t.Helper()
	dir := t.TempDir()
	newKey := func() (ssh.Signer, *ecdsa.PrivateKey) {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		s, err := ssh.NewSignerFromKey(k)
		if err != nil {
			t.Fatal(err)
		}
		return s, k
	}
	hostKey, _ := newKey()
	client, clientKey := newKey()
	block, err := ssh.MarshalPrivateKey(clientKey, "")
	if err != nil {
		t.Fatal(err)
	}
	s := &sshd{key: filepath.Join(dir, "key"), hosts: filepath.Join(dir, "known_hosts")}
	cfg := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
		if string(k.Marshal()) != string(client.PublicKey().Marshal()) {
			return nil, io.EOF
		}
		return &ssh.Permissions{}, nil
	}}
	cfg.AddHostKey(hostKey)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	for file, text := range map[string][]byte{
		s.key: pem.EncodeToMemory(block), s.hosts: []byte(knownhosts.Line([]string{s.addr}, hostKey.PublicKey()) + "\n"),
	} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	accept(t, l, func(c net.Conn) { serveSSH(c, cfg, sim, path) })
	return s
}

func serveSSH(c net.Conn, cfg *ssh.ServerConfig, sim *simhost.Host, path string) {
	conn, chans, reqs, err := ssh.NewServerConn(c, cfg)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(reqs)
	for nc := range chans {
		var msg struct {
			Path, R0 string
			R1       uint32
		}
		if nc.ChannelType() != "direct-streamlocal@openssh.com" || ssh.Unmarshal(nc.ExtraData(), &msg) != nil || msg.Path != path {
			_ = nc.Reject(ssh.ConnectionFailed, "no such socket")
			continue
		}
		ch, r, err := nc.Accept()
		if err != nil {
			continue
		}
		go ssh.DiscardRequests(r)
		d, err := sim.Dial(context.Background())
		if err != nil {
			_ = ch.Close()
			continue
		}
		go func() {
			_, _ = io.Copy(d, ch)
			_ = d.Close()
		}()
		go func() {
			_, _ = io.Copy(ch, d)
			_ = ch.Close()
		}()
	}
	_ = conn.Wait()
}

func TestDial_ssh(t *testing.T) {
	sim, _ := simSocket(t)
	const path = "/run/libvirt/virtqemud-sock"
	s := newSSHD(t, sim, path)
	other := newSSHD(t, sim, path)
	base := Endpoint{Transport: TransportSSH, Address: s.addr, User: "root", KeyFile: s.key, KnownHosts: s.hosts,
		Sockets: []string{"/run/libvirt/libvirt-sock", path}}
	for name, tt := range map[string]struct {
		change func(*Endpoint)
		want   string
	}{
		"the second socket":         {func(*Endpoint) {}, ""},
		"another host key":          {func(e *Endpoint) { e.KnownHosts = other.hosts }, "key is unknown"},
		"no known_hosts":            {func(e *Endpoint) { e.KnownHosts = "/nowhere" }, "known hosts: open /nowhere: no such file or directory (connect once with ssh"},
		"any host key, asked for":   {func(e *Endpoint) { e.NoVerify = true; e.KnownHosts = "/nowhere" }, ""},
		"another client's key":      {func(e *Endpoint) { e.KeyFile = other.key }, "unable to authenticate"},
		"no key":                    {func(e *Endpoint) { e.KeyFile = "/nowhere" }, "key file: open /nowhere: no such file or directory"},
		"the socket is not allowed": {func(e *Endpoint) { e.Sockets = []string{"/x"} }, "the server needs AllowStreamLocalForwarding yes"},
	} {
		t.Run(name, func(t *testing.T) {
			e := base
			tt.change(&e)
			err := answers(t, e)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q in it", err, tt.want)
			}
		})
	}
}
