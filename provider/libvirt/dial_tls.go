package libvirt

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
)

// tlsFiles are the certificate authority, and our certificate and key, where
// libvirt's own clients look for them (libvirt's virnettlscontext.c).
func (e Endpoint) tlsFiles() (ca, cert, key string) {
	if d := e.PKIPath; d != "" {
		return filepath.Join(d, "cacert.pem"), filepath.Join(d, "clientcert.pem"), filepath.Join(d, "clientkey.pem")
	}
	return "/etc/pki/CA/cacert.pem", "/etc/pki/libvirt/clientcert.pem", "/etc/pki/libvirt/private/clientkey.pem"
}

// tlsAccepted is the byte with which a daemon says, after the handshake, that
// it takes the client's certificate.
const tlsAccepted = 1

func (e Endpoint) dialTLS(ctx context.Context) (net.Conn, error) {
	cfg, err := e.tlsConfig()
	if err != nil {
		return nil, fmt.Errorf("tls %s: %w", e.Address, err)
	}
	tcp, err := e.dialTCP(ctx)
	if err != nil {
		return nil, err
	}
	// The byte that follows the handshake has no deadline of its own.
	stop := context.AfterFunc(ctx, func() { _ = tcp.Close() })
	c := tls.Client(tcp, cfg)
	if err := e.greet(ctx, c); err != nil {
		stop()
		_ = tcp.Close()
		return nil, fmt.Errorf("tls %s: %w", e.Address, errors.Join(ctx.Err(), err))
	}
	if !stop() {
		return nil, ctx.Err() // the connection is being closed
	}
	return c, nil
}

func (e Endpoint) greet(ctx context.Context, c *tls.Conn) error {
	if err := c.HandshakeContext(ctx); err != nil {
		return err
	}
	var b [1]byte
	if _, err := io.ReadFull(c, b[:]); err != nil {
		return fmt.Errorf("the daemon did not accept our certificate: %w", err)
	}
	if b[0] != tlsAccepted {
		return errors.New("the daemon does not accept our certificate")
	}
	return nil
}

func (e Endpoint) tlsConfig() (*tls.Config, error) {
	caFile, certFile, keyFile := e.tlsFiles()
	host, _, err := net.SplitHostPort(e.Address)
	if err != nil {
		return nil, err
	}
	cfg := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12, InsecureSkipVerify: e.NoVerify} //nolint:gosec // asked for in the URI, and warned about by check
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("client certificate: %w", err)
	}
	cfg.Certificates = []tls.Certificate{pair}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	cfg.RootCAs = x509.NewCertPool()
	if !cfg.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("certificate authority %s: no certificate in it", caFile)
	}
	return cfg, nil
}
