package libvirt

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"unicode"

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

// userData joins the template's user-data with virdeck's own.
func userData(b model.BuildSpec) ([]byte, error) {
	env, err := proxyEnv(b.Port, b.Creds)
	if err != nil {
		return nil, err
	}
	top, err := userMap(b.Template.UserData)
	if err != nil {
		return nil, err
	}
	put(top, "hostname", text2node(b.Hostname))
	file := &yaml.Node{Kind: yaml.MappingNode}
	put(file, "path", text2node(proxyEnvPath))
	put(file, "permissions", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "0600", Style: yaml.SingleQuotedStyle})
	put(file, "content", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: env, Style: yaml.LiteralStyle})
	list := get(top, "write_files")
	if list == nil {
		list = &yaml.Node{Kind: yaml.SequenceNode}
		put(top, "write_files", list)
	}
	list.Style = 0 // one item a line, whatever it was
	list.Content = append(list.Content, file)
	var out bytes.Buffer
	out.WriteString(cloudConfig + "\n")
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(top); err != nil {
		return nil, fmt.Errorf("user-data: %w", err)
	}
	if err := enc.Close(); err != nil {
		return nil, fmt.Errorf("user-data: %w", err)
	}
	return out.Bytes(), nil
}

func proxyEnv(port uint16, c model.Credentials) (string, error) {
	switch {
	case port == 0:
		return "", errors.New("proxy port: 0")
	case strings.Contains(c.User, ":"):
		return "", errors.New("proxy credentials: a user name with a colon")
	case strings.ContainsFunc(c.User+c.Password, unicode.IsControl):
		return "", errors.New("proxy credentials: control characters")
	}
	env := "PROXY_PORT=" + strconv.Itoa(int(port)) + "\n"
	if !c.Empty() {
		env += "PROXY_AUTH=" + c.User + ":" + c.Password + "\n"
	}
	return env, nil
}

// userMap reads a template's user-data: a cloud-config, one mapping, that leaves
// to virdeck what is virdeck's.
func userMap(text string) (*yaml.Node, error) {
	empty := &yaml.Node{Kind: yaml.MappingNode}
	if strings.TrimSpace(text) == "" {
		return empty, nil
	}
	if first, _, _ := strings.Cut(text, "\n"); strings.TrimRight(first, " \t\r") != cloudConfig {
		return nil, fmt.Errorf("user_data: its first line is not %s; other kinds of user-data cannot be merged", cloudConfig)
	}
	_, rest, _ := strings.Cut(text, "\n") // the first line is written anew
	dec := yaml.NewDecoder(strings.NewReader("\n" + rest))
	var doc yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return empty, nil
	} else if err != nil {
		return nil, fmt.Errorf("user_data: %w", err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("user_data: more than one YAML document")
	}
	var check map[string]any // finds what a node hides: keys that stand twice, and other types
	if err := doc.Decode(&check); err != nil {
		return nil, fmt.Errorf("user_data: not one YAML mapping: %w", err)
	}
	if len(check) == 0 {
		return empty, nil
	}
	top := doc.Content[0]
	if get(top, "hostname") != nil {
		return nil, errors.New("user_data: hostname is set by virdeck")
	}
	files := get(top, "write_files")
	if files == nil {
		return top, nil
	}
	if files.Kind != yaml.SequenceNode {
		return nil, errors.New("user_data: write_files is not a list")
	}
	for i, f := range files.Content {
		if f.Kind == yaml.AliasNode {
			f = f.Alias
		}
		if p := get(f, "path"); p == nil {
			return nil, fmt.Errorf("user_data: write_files item %d has no path", i+1)
		} else if p.Value == proxyEnvPath {
			return nil, fmt.Errorf("user_data: %s is written by virdeck", proxyEnvPath)
		}
	}
	return top, nil
}

func text2node(s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
}

// get returns the value of a key of a mapping, or nil.
func get(m *yaml.Node, key string) *yaml.Node {
	if m.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			return m.Content[i+1]
		}
	}
	return nil
}

// put adds a key that is not there yet.
func put(m *yaml.Node, key string, v *yaml.Node) {
	m.Content = append(m.Content, text2node(key), v)
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
