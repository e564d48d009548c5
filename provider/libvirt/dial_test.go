package libvirt

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"virdeck/model"
	"virdeck/provider/libvirt/simhost"
)

// answers reports whether a link over the endpoint comes up and answers.
func answers(t *testing.T, e Endpoint) error {
	t.Helper()
	l := NewLink(LinkOptions{Host: "h", Dial: e.Dialer(), Endpoint: e.String()})
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	return version(ctx, l)
}

func simSocket(t *testing.T) (*simhost.Host, string) {
	t.Helper()
	sim := simhost.New(simhost.Options{})
	path := filepath.Join(t.TempDir(), "s")
	l, err := sim.ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = l.Close()
		_ = sim.Close()
	})
	return sim, path
}

// relay serves a listener by copying each connection to the daemon, after greet.
func relay(t *testing.T, l net.Listener, sim *simhost.Host, greet func(net.Conn) error) {
	t.Helper()
	accept(t, l, func(c net.Conn) {
		if greet(c) != nil {
			return
		}
		d, err := sim.Dial(context.Background())
		if err != nil {
			return
		}
		go func() {
			_, _ = io.Copy(d, c)
			_ = d.Close()
		}()
		_, _ = io.Copy(c, d)
	})
}

// accept serves each connection in a goroutine of its own until the test ends,
// and closes it then.
func accept(t *testing.T, l net.Listener, serve func(net.Conn)) {
	t.Helper()
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				serve(c)
			}()
		}
	}()
}

func TestDial_unix(t *testing.T) {
	_, path := simSocket(t)
	missing := filepath.Join(t.TempDir(), "none")
	stale := filepath.Join(t.TempDir(), "stale") // what a daemon leaves that was killed or removed
	old, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale})
	if err != nil {
		t.Fatal(err)
	}
	old.SetUnlinkOnClose(false)
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		sockets []string
		want    string // in the error; empty: it works
	}{
		"the first":             {[]string{path}, ""},
		"the second, modular":   {[]string{missing, path}, ""},
		"neither is there":      {[]string{missing, missing + "2"}, "no such file or directory"},
		"the first is stale":    {[]string{stale, path}, ""},
		"all are stale or gone": {[]string{stale, missing}, "dial unix " + stale + ": connect: connection refused; then dial unix " + missing + ": connect: no such file or directory"},
		"the first is not ours": {[]string{strings.Repeat("x", 200), path}, "invalid argument"},
	} {
		t.Run(name, func(t *testing.T) {
			err := answers(t, Endpoint{Transport: TransportUnix, Sockets: tt.sockets})
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q in it", err, tt.want)
			}
		})
	}
}

// Another service on the port is named by what it says.
func TestDial_anotherService(t *testing.T) {
	sim, _ := simSocket(t)
	s := newSSHD(t, sim, "/sock")
	err := answers(t, Endpoint{Transport: TransportTCP, Address: s.addr})
	const want = `link down: what answers there does not speak libvirt's protocol: it says "SSH-2.0-Go"`
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestDial_tcp(t *testing.T) {
	sim, _ := simSocket(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	relay(t, l, sim, func(net.Conn) error { return nil })
	if err := answers(t, Endpoint{Transport: TransportTCP, Address: l.Addr().String()}); err != nil {
		t.Error(err)
	}
}

// pki makes a certificate authority with a server's and a client's certificate
// in dir, and returns the server's configuration.
func pki(t *testing.T, dir string) *tls.Config {
	t.Helper()
	key := func() *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	write := func(name, kind string, b []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	caKey := key()
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign}
	sign := func(serial int64, usage x509.ExtKeyUsage, k *ecdsa.PrivateKey) []byte {
		c := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "x"}, NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
			ExtKeyUsage: []x509.ExtKeyUsage{usage}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
		b, err := x509.CreateCertificate(rand.Reader, c, ca, &k.PublicKey, caKey)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	if err != nil {
		t.Fatal(err)
	}
	clientKey, serverKey := key(), key()
	der, err := x509.MarshalECPrivateKey(clientKey)
	if err != nil {
		t.Fatal(err)
	}
	write("cacert.pem", "CERTIFICATE", caDER)
	write("clientcert.pem", "CERTIFICATE", sign(2, x509.ExtKeyUsageClientAuth, clientKey))
	write("clientkey.pem", "EC PRIVATE KEY", der)
	pool := x509.NewCertPool()
	parsed, err := x509.ParseCertificate(caDER)
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(parsed)
	return &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, MinVersion: tls.VersionTLS12,
		Certificates: []tls.Certificate{{Certificate: [][]byte{sign(3, x509.ExtKeyUsageServerAuth, serverKey)}, PrivateKey: serverKey}}}
}

func TestDial_tls(t *testing.T) {
	sim, _ := simSocket(t)
	good, other := t.TempDir(), t.TempDir()
	cfg := pki(t, good)
	pki(t, other)
	for name, tt := range map[string]struct {
		dir      string
		greeting []byte
		noVerify bool
		want     string
	}{
		"accepted":                       {dir: good, greeting: []byte{1}},
		"refused after the handshake":    {dir: good, greeting: []byte{0}, want: "the daemon does not accept our certificate"},
		"closed after the handshake":     {dir: good, want: "tls 127.0.0.1:"},
		"another authority":              {dir: other, greeting: []byte{1}, want: "certificate signed by unknown authority"},
		"another authority, no_verify":   {dir: other, greeting: []byte{1}, noVerify: true, want: "unknown certificate authority"},
		"no certificate of our own":      {dir: t.TempDir(), want: "client certificate: open "},
		"good certificates and noVerify": {dir: good, greeting: []byte{1}, noVerify: true},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := tls.Listen("tcp", "127.0.0.1:0", cfg)
			if err != nil {
				t.Fatal(err)
			}
			relay(t, l, sim, func(c net.Conn) error {
				if len(tt.greeting) == 0 {
					return io.EOF
				}
				_, err := c.Write(tt.greeting)
				return err
			})
			err = answers(t, Endpoint{Transport: TransportTLS, Address: l.Addr().String(), PKIPath: tt.dir, NoVerify: tt.noVerify})
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q in it", err, tt.want)
			}
		})
	}
}

// Fifty times connected and replaced, over each transport: nothing stays behind,
// neither goroutines (TestMain looks) nor descriptors.
func TestDial_cyclesLeaveNothing(t *testing.T) {
	sim, unixPath := simSocket(t)
	dir := t.TempDir()
	cfg := pki(t, dir)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	relay(t, tcp, sim, func(net.Conn) error { return nil })
	secure, err := tls.Listen("tcp", "127.0.0.1:0", cfg)
	if err != nil {
		t.Fatal(err)
	}
	relay(t, secure, sim, func(c net.Conn) error { _, err := c.Write([]byte{1}); return err })
	s := newSSHD(t, sim, "/sock")
	for name, e := range map[string]Endpoint{
		"unix": {Transport: TransportUnix, Sockets: []string{unixPath}},
		"tcp":  {Transport: TransportTCP, Address: tcp.Addr().String()},
		"tls":  {Transport: TransportTLS, Address: secure.Addr().String(), PKIPath: dir},
		"ssh":  {Transport: TransportSSH, Address: s.addr, User: "root", KeyFile: s.key, KnownHosts: s.hosts, Sockets: []string{"/sock"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := NewLink(LinkOptions{Host: "h", Dial: e.Dialer(), Endpoint: e.String()})
			defer l.Close()
			if err := version(t.Context(), l); err != nil {
				t.Fatal(err)
			}
			before := descriptors(t)
			for range cycles() {
				if _, err := l.Reconnect(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := version(t.Context(), l); err != nil {
					t.Fatal(err)
				}
			}
			if st := l.Status(); st.State != model.LinkUp || st.Generation != uint64(cycles())+1 {
				t.Errorf("%v, generation %d", st.State, st.Generation)
			}
			// The far ends run in this process too, and close when they notice.
			deadline := time.Now().Add(5 * time.Second)
			for descriptors(t) > before+2 {
				if time.Now().After(deadline) {
					t.Fatalf("%d descriptors, %d before", descriptors(t), before)
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
}

// cycles is how often the cycle test goes round.
func cycles() int { return soak(50) }

func descriptors(t *testing.T) int {
	t.Helper()
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(d)
}
