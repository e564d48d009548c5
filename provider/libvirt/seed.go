package libvirt

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	"github.com/kdomanski/iso9660"
	"go.yaml.in/yaml/v3"

	"virdeck/model"
)

// The NoCloud seed: a small ISO 9660 image with the label and the files that
// cloud-init looks for. Its names are in lower case on the disc itself, which is
// how Linux reads a disc without extensions, and how it reads them here.
const (
	seedLabel    = "cidata"
	seedMeta     = "meta-data"
	seedUser     = "user-data"
	cloudConfig  = "#cloud-config"
	proxyEnvPath = "/etc/proxy.env"
	maxSeed      = 4 << 20 // of one that is read back
	isoSector    = 2048
)

// seedImage makes the image. Equal specs of equal identity give equal bytes.
func seedImage(id identity, b model.BuildSpec) ([]byte, error) {
	user, err := userData(b)
	if err != nil {
		return nil, err
	}
	meta, err := yaml.Marshal(struct {
		InstanceID string `yaml:"instance-id"`
		Hostname   string `yaml:"local-hostname"`
	}{"iid-" + formatUUID(id.uuid), b.Hostname})
	if err != nil {
		return nil, fmt.Errorf("meta-data: %w", err)
	}
	return isoImage(map[string][]byte{seedMeta: meta, seedUser: user})
}

func isoImage(files map[string][]byte) ([]byte, error) {
	w, err := iso9660.NewWriter()
	if err != nil {
		return nil, fmt.Errorf("seed image: %w", err)
	}
	defer func() { _ = w.Cleanup() }() // a temporary directory; nothing depends on its end
	for name, data := range files {
		if err := w.AddFile(bytes.NewReader(data), name); err != nil {
			return nil, fmt.Errorf("seed image: %s: %w", name, err)
		}
	}
	var out bytes.Buffer
	if err := w.WriteTo(&out, seedLabel); err != nil {
		return nil, fmt.Errorf("seed image: %w", err)
	}
	img := out.Bytes()
	// The writer notes the hour of its making (ECMA-119 8.4.26 to 8.4.29), which
	// would make each image another one: "not specified" instead.
	for _, at := range []int{813, 830, 847, 864} {
		copy(img[16*isoSector+at:], "0000000000000000\x00")
	}
	return img, nil
}

// seedSpec reads a seed back. The image may be anything.
func seedSpec(img []byte) (spec model.BuildSpec, err error) {
	defer func() {
		if r := recover(); r != nil { // the reader trusts offsets in the image
			err = fmt.Errorf("seed image: %v", r)
		}
	}()
	files, err := isoFiles(img)
	if err != nil {
		return spec, fmt.Errorf("seed image: %w", err)
	}
	var user struct {
		Hostname string `yaml:"hostname"`
		Files    []struct {
			Path    string `yaml:"path"`
			Content string `yaml:"content"`
		} `yaml:"write_files"`
	}
	if err := yaml.Unmarshal(files[seedUser], &user); err != nil {
		return spec, fmt.Errorf("seed image: user-data: %w", err)
	}
	spec.Hostname = user.Hostname
	for _, f := range user.Files {
		if f.Path != proxyEnvPath {
			continue
		}
		for line := range strings.Lines(f.Content) {
			key, value, _ := strings.Cut(strings.TrimRight(line, "\n"), "=")
			switch key {
			case "PROXY_PORT":
				n, err := strconv.ParseUint(value, 10, 16)
				if err != nil {
					return spec, fmt.Errorf("seed image: port: %w", err)
				}
				spec.Port = uint16(n)
			case "PROXY_AUTH":
				spec.Creds.User, spec.Creds.Password, _ = strings.Cut(value, ":")
			}
		}
	}
	if spec.Port == 0 {
		return spec, fmt.Errorf("seed image: no %s with a port in it", proxyEnvPath)
	}
	return spec, nil
}

func isoFiles(img []byte) (map[string][]byte, error) {
	i, err := iso9660.OpenImage(bytes.NewReader(img))
	if err != nil {
		return nil, err
	}
	root, err := i.RootDir()
	if err != nil {
		return nil, err
	}
	list, err := root.GetChildren()
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, f := range list {
		if f.IsDir() || f.Size() > int64(len(img)) || f.Name() != seedMeta && f.Name() != seedUser {
			continue
		}
		b, err := io.ReadAll(f.Reader())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name(), err)
		}
		out[f.Name()] = b
	}
	return out, nil
}

// validHostname is RFC 1123: what a guest takes as its name.
func validHostname(s string) bool {
	if len(s) == 0 || len(s) > 253 || net.ParseIP(s) != nil {
		return false
	}
	for part := range strings.SplitSeq(s, ".") {
		if len(part) == 0 || len(part) > 63 || part[0] == '-' || part[len(part)-1] == '-' ||
			strings.ContainsFunc(part, func(r rune) bool {
				return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
			}) {
			return false
		}
	}
	return true
}
