package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"

	"virdeck/internal/problem"
)

// FuzzParse: whatever the file, it is a configuration or problems of one
// printable line each; and for good TOML the walk that finds the lines sees the
// same keys in the same order as the library.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/bad/*.toml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range append(files, "../config.toml.example") {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, s := range scanCases() {
		f.Add([]byte(s.doc))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		src := testSources()
		c, err := Parse("f", data, src)
		again, errAgain := Parse("f", data, src)
		if errText(err) != errText(errAgain) || !reflect.DeepEqual(c, again) {
			t.Errorf("two runs differ: %v\n%v", err, errAgain)
		}
		var problems Problems
		switch {
		case err == nil && c != nil:
		case errors.As(err, &problems) && len(problems) > 0 && c == nil:
			for _, p := range problems {
				if text := p.Error(); strings.ContainsFunc(text, control) || !strings.HasPrefix(text, "f:") {
					t.Errorf("not one clean line: %q", text)
				}
				if lines := strings.Count(string(data), "\n") + 1; p.Line > lines {
					t.Errorf("line %d of %d: %v", p.Line, lines, p)
				}
			}
		default:
			t.Fatalf("Parse() = %v, %v", c, err)
		}
		var tree map[string]any
		if md, err := toml.Decode(string(data), &tree); err == nil {
			compareKeys(t, md, string(data))
		}
	})
}

// compareKeys holds scan against the library's list of keys.
func compareKeys(t *testing.T, md toml.MetaData, doc string) {
	t.Helper()
	var want, got []string
	for _, k := range md.Keys() {
		want = append(want, strings.Join(k, "\x00"))
	}
	for _, k := range scan(doc).keys {
		plain := slices.DeleteFunc(slices.Clone(k), func(s string) bool { return strings.HasPrefix(s, "[") })
		got = append(got, plain.id())
	}
	// a key that begins with a bracket looks like an index here
	if !strings.Contains(strings.Join(want, "\x00"), "[") && !slices.Equal(want, got) {
		t.Errorf("keys (-library +scan) of\n%s\n%s", doc, cmp.Diff(want, got))
	}
}

type scanCase struct {
	name, doc string
	want      map[string]int // key with dots, to line
}

func scanCases() []scanCase {
	return []scanCase{
		{"plain", "a = 1\n\n# b = 2\n  b = \"#\" # c\n", map[string]int{"a": 1, "b": 4}},
		{"tables", "[t]\na = 1\n[t.u]\nb = 1\n", map[string]int{"t": 1, "t.a": 2, "t.u": 3, "t.u.b": 4}},
		{"arrays of tables", "[[p]]\na=1\n[[p]]\na=1\n[p.l]\nz=1\n[[p.q]]\nx=1\n[[p]]\n[[p.q]]\nx=1\n", map[string]int{
			"p": 1, "p.[0]": 1, "p.[0].a": 2, "p.[1]": 3, "p.[1].a": 4, "p.[1].l": 5, "p.[1].l.z": 6,
			"p.[1].q": 7, "p.[1].q.[0].x": 8, "p.[2]": 9, "p.[2].q.[0]": 10, "p.[2].q.[0].x": 11,
		}},
		{"lists", "a = [ # [\n 1, \"]\",\n '#', [2,\n 3]]\nb = []\nc = 1", map[string]int{
			"a": 1, "a.[0]": 2, "a.[1]": 2, "a.[2]": 3, "a.[3]": 3, "a.[3].[1]": 4, "b": 5, "c": 6,
		}},
		{"inline tables", "a = {b = 1, c = {d.e = \"}\"}}\nf = [{g = 1},\n{g = 2}]\n", map[string]int{
			"a": 1, "a.b": 1, "a.c": 1, "a.c.d.e": 1, "f.[0].g": 2, "f.[1]": 3, "f.[1].g": 3,
		}},
		{"strings", "a = \"\"\"\nx = 1\n\\\"\"\"\"\"\nb = '''\n[c]\n''''\nd = \"\\\"\"\ne = ''\n", map[string]int{"a": 1, "b": 4, "d": 7, "e": 8}},
		{"quoted keys", "\"a b\" . 'c.d' = 1\n[ \"x\\u0041\" ]\n\"\" = 1\n", map[string]int{"a b.c.d": 1, "xA": 2, "xA.": 3}},
		{"no newline at the end, CRLF, BOM", "\ufeffa = 1\r\n[t]\r\nb = 2", map[string]int{"a": 1, "t": 2, "t.b": 3}},
		{"dates", "a = 2026-01-02 03:04:05Z # x\nb = 1", map[string]int{"a": 1, "b": 2}},
	}
}

func TestScan(t *testing.T) {
	for _, tt := range scanCases() {
		t.Run(tt.name, func(t *testing.T) {
			var tree map[string]any
			md, err := toml.Decode(tt.doc, &tree)
			if err != nil {
				t.Fatal(err)
			}
			compareKeys(t, md, tt.doc)
			got := map[string]int{}
			for id, line := range scan(tt.doc).line {
				got[strings.ReplaceAll(id, "\x00", ".")] = line
			}
			for key, line := range tt.want {
				if got[key] != line {
					t.Errorf("%s is in line %d, want %d; all: %v", key, got[key], line, got)
				}
			}
		})
	}
}

func TestScan_notTOML(_ *testing.T) {
	for _, doc := range []string{"", "[", "[[", "[[a", "a", "=", "]", "a = [", "a = {", "a = {b", "a = {}}}", "'", "\"", "a = '''", "\"\\", "a = [}", "...", "#", "\x00"} {
		scan(doc) // it must end
	}
}

func TestSuggest(t *testing.T) {
	names := []string{"name", "state_dir", "proxy", "health"}
	for got, want := range map[string]string{
		"nmae": "name", "Name": "name", "proxies": "proxy", "statedir": "state_dir", "heatlh": "health",
		"colour": "", "": "", "x": "", strings.Repeat("name", 1000): "",
	} {
		if want != "" {
			want = "; did you mean \"" + want + "\"?"
		}
		if s := problem.Suggest(got, names); s != want {
			t.Errorf("problem.Suggest(%.20q) = %q, want %q", got, s, want)
		}
	}
}

// TestParse_boundless: a file may be long, deep or full of mistakes, and still
// costs no more than its length.
func TestParse_boundless(t *testing.T) {
	n := 1 << 20
	head := "\n\n"
	for name, tt := range map[string]struct{ doc, want string }{
		"lists":         {head + "a = " + strings.Repeat("[", n), "f:3: nested too deep; allowed: 16 levels"},
		"inline tables": {head + strings.Repeat("a = {", n/5), "f:3: nested too deep; allowed: 16 levels"},
		"dotted key":    {head + strings.Repeat("a.", n/2) + "a = 1", "f:3: nested too deep; allowed: 16 levels"},
		"dotted table":  {head + "[" + strings.Repeat("a.", n/2) + "a]", "f:3: nested too deep; allowed: 16 levels"},
		"long key":      {head + strings.Repeat("a", n) + " = 1", "f:3: " + strings.Repeat("a", 400) + "...: unknown key; allowed: fleet, "},
		"long value":    {head + "[fleet]\nname = \"" + strings.Repeat("A", n) + "\"", `f:4: fleet.name: "` + strings.Repeat("A", 400) + `..." is not a name; allowed: a to z, 0 to 9, dots and -, beginning with a letter or digit, at most 63`},
		"deep enough":   {head + "[a.b.c.d.e.f.g.h.i.j.k.l]\nm = [[[1]]]\n", "f:3: a: unknown key; allowed: fleet, "},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse("f", []byte(tt.doc), testSources()); !strings.HasPrefix(errText(err), tt.want) {
				t.Errorf("Parse() = %.600s, want %s...", errText(err), tt.want)
			}
		})
	}
	t.Run("many mistakes", func(t *testing.T) {
		doc := strings.Repeat("[[host]]\nname = \"h\"\n[[proxy]]\nname = \"p\"\nhost = \"x\"\n", 5000)
		_, err := Parse("f", []byte(doc), testSources())
		if ps, ok := errors.AsType[Problems](err); !ok || len(ps) < 5*5000-10 {
			t.Errorf("%d problems, want about 25000", len(ps))
		}
	})
}

func BenchmarkParse(b *testing.B) {
	var doc strings.Builder
	doc.WriteString(small)
	for i := range 50 {
		fmt.Fprintf(&doc, "[[host]]\nname = \"h-%d\"\nuri = \"qemu+ssh://root@h-%d/system\"\n", i, i)
	}
	for i := range 10000 {
		fmt.Fprintf(&doc, "[[proxy]]\nname = \"p-%d\"\nhost = \"h-%d\"\nport = 3128\nlabels = { zone = \"north\" }\n", i, i%50)
	}
	for b.Loop() {
		if _, err := Parse("f", []byte(doc.String()), testSources()); err != nil {
			b.Fatal(err)
		}
	}
}
