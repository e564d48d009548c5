package libvirt

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"virdeck/model"
)

// userData joins the template's user-data with virdeck's own.
func userData(b model.BuildSpec) ([]byte, error) {
	env, err := proxyEnv(b.Port, b.Creds)
	if err != nil {
		return nil, err
	}
	top, problems := userMap(b.Template.UserData)
	if len(problems) > 0 {
		return nil, problems[0]
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
func userMap(text string) (*yaml.Node, []model.TextProblem) {
	empty := &yaml.Node{Kind: yaml.MappingNode}
	if strings.TrimSpace(text) == "" {
		return empty, nil
	}
	var u userText
	first, rest, _ := strings.Cut(text, "\n")
	if strings.TrimRight(first, " \t\r") != cloudConfig {
		u.problem(1, "the first line is not %s; allowed: cloud-config, the one kind that can be merged", cloudConfig)
		return nil, u.problems
	}
	dec := yaml.NewDecoder(strings.NewReader("\n" + rest)) // the first line is written anew
	var doc, second yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return empty, nil
	} else if err != nil {
		u.unreadable(err)
		return nil, u.problems
	}
	if err := dec.Decode(&second); err == nil {
		u.problem(second.Line, "another YAML document begins; allowed: one")
	} else if !errors.Is(err, io.EOF) {
		u.unreadable(err)
	}
	top := doc.Content[0]
	switch {
	case top.Tag == "!!null" || top.Kind == yaml.MappingNode && len(top.Content) == 0:
		top = empty
	case top.Kind != yaml.MappingNode:
		u.problem(top.Line, "not settings with names; allowed: lines such as \"packages: [curl]\"")
	default:
		u.names(top)
		u.ours(top)
	}
	if len(u.problems) == 0 { // what only shows when it is used, such as an unknown tag
		if err := doc.Decode(new(map[string]any)); err != nil {
			u.unreadable(err)
		}
	}
	slices.SortStableFunc(u.problems, func(a, b model.TextProblem) int { return cmp.Compare(a.Line, b.Line) })
	return top, u.problems
}

// userText is user-data while it is checked.
type userText struct{ problems []model.TextProblem }

func (u *userText) problem(line int, format string, args ...any) {
	u.problems = append(u.problems, model.TextProblem{Setting: "user_data", Line: line, Msg: fmt.Sprintf(format, args...)})
}

// The YAML library's words for a text that is none: its line, and what YAML has to
// say about it.
var yamlSyntax = regexp.MustCompile(`^yaml: (?:line ([0-9]+): )?([^\n]*)$`)

func (u *userText) unreadable(err error) {
	if m := yamlSyntax.FindStringSubmatch(err.Error()); m != nil {
		line, _ := strconv.Atoi(m[1]) // 0 where it does not say
		u.problem(line, "not YAML: %s", m[2])
		return
	}
	u.problem(0, "not a cloud-config: something in it has another type than its tag says")
}

// names checks that names are texts, and stand once.
func (u *userText) names(n *yaml.Node) {
	if n.Kind == yaml.MappingNode {
		lines := map[string]int{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i]
			switch first := lines[k.Value]; {
			case k.Kind == yaml.AliasNode:
			case k.Kind != yaml.ScalarNode:
				u.problem(k.Line, "a name is a list or has names itself; allowed: a text")
			case first > 0:
				u.problem(k.Line, "%q is given already in line %d; allowed: each once", k.Value, first)
			default:
				lines[k.Value] = k.Line
			}
		}
	}
	for _, c := range n.Content { // an alias has none: what it stands for is elsewhere
		u.names(c)
	}
}

// ours checks that what virdeck sets is left to it.
func (u *userText) ours(top *yaml.Node) {
	if n := get(top, "hostname"); n != nil {
		u.problem(n.Line, "hostname is set by virdeck; allowed: no hostname")
	}
	files := get(top, "write_files")
	switch {
	case files == nil:
		return
	case files.Kind != yaml.SequenceNode:
		u.problem(files.Line, "write_files is not a list; allowed: a list of files")
		return
	}
	for i, f := range files.Content {
		at := f.Line
		if f.Kind == yaml.AliasNode {
			f = f.Alias
		}
		if p := get(f, "path"); p == nil {
			u.problem(at, "item %d of write_files has no path; allowed: one in each", i+1)
		} else if p.Value == proxyEnvPath {
			u.problem(at, "%s is written by virdeck; allowed: other files", proxyEnvPath)
		}
	}
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
