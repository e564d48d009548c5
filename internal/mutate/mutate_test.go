package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// tree is a module with one function and tests that guard it, or do not.
func tree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":            "module example\n\ngo 1.26\n",
		"sum/sum.go":        "package sum\n\nfunc Add(a, b int) int {\n\treturn a + b\n}\n\nfunc Sub(a, b int) int {\n\treturn a - b\n}\n",
		"sum/sum_test.go":   "package sum\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tif Add(2, 3) != 5 {\n\t\tt.Error(\"wrong\")\n\t}\n}\n\nfunc TestBlind(t *testing.T) {\n\tif Add(0, 0) != 0 {\n\t\tt.Error(\"wrong\")\n\t}\n}\n\nfunc TestBroken(t *testing.T) {\n\tt.Error(\"always\")\n}\n",
		"bin/program":       "not to be copied",
		".git/HEAD":         "not to be copied",
		"sub/testdata/x":    "copied",
		"sub/testdata/y.sh": "copied",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// change is a patch of sum.go that replaces Add's body.
func change(body string) string {
	return `--- a/sum/sum.go
+++ b/sum/sum.go
@@ -1,5 +1,5 @@
 package sum
 
 func Add(a, b int) int {
-	return a + b
+	` + body + `
 }
`
}

func runOn(t *testing.T, dir string, patches map[string]string, args ...string) (int, string) {
	t.Helper()
	where := t.TempDir()
	for name, text := range patches {
		if err := os.WriteFile(filepath.Join(where, name+".patch"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var out, errOut strings.Builder
	code := run(t.Context(), append([]string{"-tree", dir, "-patches", where}, args...), &out, &errOut)
	return code, out.String() + errOut.String()
}

func TestRun(t *testing.T) {
	const add = "# mutation: a sum is a difference\n# red: ./sum TestAdd\n"
	for _, tt := range []struct {
		name, patch string
		code        int
		want        string // regexp
	}{
		{"red", add + change("return a - b"), 0, `(?m)^red +[0-9.]+s  m +\./sum TestAdd$`},
		{"red, with git's own lines", add + "diff --git a/sum/sum.go b/sum/sum.go\nindex 1..2 100644\n" + change("return a - b"), 0, `1 mutations, 1 tests to go red, 0 not`},
		{"panics", add + change(`panic("x")`), 0, `(?m)^red `},
		{"hangs", add + change("select {}"), 0, `(?m)^red `},
		{"stays green", add + change("return b + a"), 1, `(?m)^STAYS GREEN .*\n    a sum is a difference`},
		{"one of two stays green", add + "# red: ./sum TestBlind\n" + change("return a - b"), 1, `(?s)red .*TestAdd\nSTAYS GREEN .*TestBlind.*2 tests to go red, 1 not`},
		{"does not build", add + change("return a + c"), 1, `(?s)^DOES NOT BUILD .*undefined: c`},
		{"does not apply", add + strings.Replace(change("return 0"), "-	return a + b", "-	return a * b", 1), 1, `(?s)^DOES NOT APPLY .*patch does not apply`},
		{"red before", "# mutation: x\n# red: ./sum TestBroken\n" + change("return a - b"), 1, `(?m)^RED WITHOUT IT `},
		{"no such test", "# mutation: x\n# red: ./sum TestAddition\n" + change("return a - b"), 1, `(?m)^NO SUCH TEST `},
		{"no such package", "# mutation: x\n# red: ./product TestAdd\n" + change("return a - b"), 1, `(?m)^DOES NOT BUILD `},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := tree(t)
			code, out := runOn(t, dir, map[string]string{"m": tt.patch}, "-timeout", "3s")
			if code != tt.code || !regexp.MustCompile(tt.want).MatchString(out) {
				t.Errorf("exit %d, want %d and %s:\n%s", code, tt.code, tt.want, out)
			}
			text, err := os.ReadFile(filepath.Join(dir, "sum/sum.go"))
			if err != nil || !strings.Contains(string(text), "return a + b") {
				t.Errorf("the tree was changed: %v\n%s", err, text)
			}
		})
	}
}

func TestRun_eachOnItsOwn(t *testing.T) {
	const add = "# mutation: x\n# red: ./sum TestAdd\n"
	code, out := runOn(t, tree(t), map[string]string{
		"a": add + change("return a - b"), "b": add + change("return a * b"), "c": add + change("return b + a"),
	}, "-run", "^[ab]$")
	if code != 0 || !strings.Contains(out, "2 mutations, 2 tests to go red, 0 not") {
		t.Errorf("exit %d:\n%s", code, out)
	}
}

func TestRun_usage(t *testing.T) {
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-run", "["}, 2, "bad usage"},
		{[]string{"extra"}, 2, "bad usage"},
		{[]string{"-colour"}, 2, "not defined"},
		{[]string{"-run", "nothing"}, 1, "no patch in"},
	} {
		code, out := runOn(t, tree(t), nil, tt.args...)
		if code != tt.code || !strings.Contains(out, tt.want) {
			t.Errorf("%q: exit %d, want %d and %q:\n%s", tt.args, code, tt.code, tt.want, out)
		}
	}
}

func TestParse_bad(t *testing.T) {
	const end = "\n--- a/x\n"
	for text, want := range map[string]string{
		"# mutation: x\n":                           "no line that begins with ---: not a patch with a header",
		"# mutation: x" + end:                       "the header needs one mutation line and at least one red line",
		"# red: ./x TestX" + end:                    "the header needs one mutation line and at least one red line",
		"# mutation: x\n# red: x TestX" + end:       "line 2: want # red: ./PACKAGE TestNAME",
		"# mutation: x\n# red: ./x" + end:           "line 2: want # red: ./PACKAGE TestNAME",
		"# mutation: x\n# note: y" + end:            "line 2: want a mutation or a red line",
		"# just words\n# red: ./x TestX" + end:      "line 1: want a mutation or a red line",
		"# mutation: x\n# red: ./x FuzzX 3" + end:   "line 2: want # red: ./PACKAGE TestNAME",
		"# mutation:\n# red: ./x TestX TestY" + end: "line 1: want a mutation or a red line",
	} {
		if _, err := parse(text); err == nil || err.Error() != want {
			t.Errorf("parse(%q) = %v, want %s", text, err, want)
		}
	}
}

func TestCopyTree(t *testing.T) {
	from, to := tree(t), t.TempDir()
	if err := copyTree(from, to); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"go.mod": true, "sub/testdata/y.sh": true, "bin/program": false, ".git": false} {
		if _, err := os.Stat(filepath.Join(to, name)); (err == nil) != want {
			t.Errorf("%s is in the copy: %v, want %v", name, err == nil, want)
		}
	}
}
