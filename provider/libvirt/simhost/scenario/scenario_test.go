package scenario

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const small = `
[[host]]
name = "kvm1"
[[host]]
name = "kvm2"
[[guest]]
host = "kvm2"
name = "p-07"
`

func parse(t *testing.T, text string, base *Scenario) *Scenario {
	t.Helper()
	s, err := Parse("x.toml", []byte(text), base)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestParse_problems(t *testing.T) {
	step := func(lines ...string) string { return small + "[[step]]\n" + strings.Join(lines, "\n") + "\n" }
	tests := []wrong{
		{"not TOML", "a = \n", []string{"x.toml:1: not TOML: expected value but found '\\n' instead"}},
		{"all in one go", "titel = \"x\"\nrepeat = \"1ms\"\n[[hosts]]\nname = \"a\"\n[[host]]\nnam = \"kvm1\"\n", []string{
			`x.toml:1: titel: unknown key "titel"; did you mean "title"?`,
			"x.toml:2: repeat: want at least one second",
			`x.toml:3: hosts 1: unknown table "hosts"; did you mean "host"?`,
			`x.toml:5: host 1: name: is missing`,
			`x.toml:6: host 1: nam: unknown key "nam"; did you mean "name"?`,
		}},
		{"one table for many", "[host]\nname = \"a\"\n", []string{"x.toml:1: host 1: want [[host]], once for each, not a table"}},
		{"twice", small + "[[guest]]\nhost = \"kvm2\"\nname = \"p-07\"\n", []string{`x.toml:11: guest 2: name: "p-07" is declared twice`}},
		{"no such host", small + "[[guest]]\nhost = \"kvm3\"\nname = \"p\"\nport = 0\nstate = \"on\"\nnetwork = \"x\"\n", []string{
			`x.toml:10: guest 2: host: unknown host "kvm3"; did you mean "kvm1"?`,
			"x.toml:12: guest 2: port: 0 is out of range; allowed: 1 to 65535",
			`x.toml:13: guest 2: state: unknown state "on"; allowed: running, booting, off, absent`,
			`x.toml:14: guest 2: network: host "kvm3" has no network "x"`,
		}},
		{"values", small + "[[guest]]\nhost = 1\nname = \"p\"\naddress = \"10.0.0.1\"\ndelay = 30\nboot_agent = \"soon\"\nno_agent_channel = \"yes\"\n", []string{
			`x.toml:10: guest 2: host: want a text in quotes, not 1`,
			`x.toml:10: guest 2: host: unknown host ""; allowed: kvm1, kvm2`,
			`x.toml:12: guest 2: address: "10.0.0.1" is not an address with its prefix length, such as "10.0.0.21/24"`,
			`x.toml:13: guest 2: delay: want a duration in quotes such as "10s" or "1m30s", not 30`,
			`x.toml:14: guest 2: boot_agent: want a duration above zero in quotes such as "3s", or "never", not "soon"`,
			`x.toml:15: guest 2: no_agent_channel: want true or false, not "yes"`,
		}},
		{"a step without anything", step(), []string{
			`x.toml:9: step 1: at: is missing; when it happens, such as "12s"`,
			"x.toml:9: step 1: what: is missing; allowed: " + strings.Join(Actions(), ", "),
		}},
		{"what", step(`at = "1s"`, `what = "freez"`, `whom = "kvm2"`), []string{`x.toml:11: step 1: what: unknown action "freez"; did you mean "freeze"?`}},
		{"whom", step(`at = "1s"`, `what = "freeze"`, `whom = "kvm2/p-07"`), []string{`x.toml:12: step 1: whom: freeze happens to a host, such as "kvm2", and "kvm2/p-07" is none`}},
		{"whom, a guest", step(`at = "1s"`, `what = "crash"`, `whom = "kvm2/p-08"`), []string{`x.toml:12: step 1: whom: unknown guest "kvm2/p-08"; did you mean "kvm2/p-07"?`}},
		{"whom, mixed", step(`at = "1s"`, `what = "call-hang"`, `whom = ["kvm2", "kvm2/p-07"]`), []string{"x.toml:12: step 1: whom: hosts and guests in one step"}},
		{"whom, none", step(`at = "1s"`, `what = "origin"`, `whom = "kvm2"`, `mode = "x"`), []string{
			"x.toml:12: step 1: whom: origin happens to nobody in particular"}},
		{"parameters", step(`at = "1s"`, `what = "agent-restart"`, `whom = "kvm2/p-07"`, `delay = "1s"`), []string{
			"x.toml:9: step 1: for: is missing; agent-restart needs it",
			"x.toml:13: step 1: delay: agent-restart takes none; it takes: for",
		}},
		{"a procedure", step(`at = "1s"`, `what = "call-hang"`, `whom = "kvm2"`, `proc = "DomainGetStat"`), []string{`x.toml:13: step 1: proc: unknown procedure "DomainGetStat"; did you mean "DomainGetState"?`}},
		{"a code", step(`at = "1s"`, `what = "call-error"`, `whom = "kvm2"`, `code = 0`), []string{"x.toml:13: step 1: code: want a number of libvirt's virErrorNumber, from 1"}},
		{"a mode", step(`at = "1s"`, `what = "proxy"`, `whom = "kvm2/p-07"`, `mode = "hung"`), []string{`x.toml:13: step 1: mode: unknown mode "hung"; did you mean "hang"?`}},
		{"after the end of a round", "repeat = \"10s\"\n" + step(`at = "10s"`, `what = "thaw"`, `whom = "kvm2"`), []string{"x.toml:11: step 1: at: 10s is not before the end of a round, 10s"}},
		{"a card", step(`at = "1s"`, `what = "agent-lists"`, `whom = "kvm2/p-07"`, `interfaces = ["lo"]`), []string{`x.toml:13: step 1: interfaces: "lo" is not a card such as "eth0 52:54:00:00:00:01 10.0.0.21/24"`}},
	}
	tests = append(append(tests, outOfRange(step)...), badPools()...)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse("x.toml", []byte(tt.text), nil)
			var ps Problems
			if !errors.As(err, &ps) {
				t.Fatalf("error %v, want problems", err)
			}
			if got := strings.Split(ps.Error(), "\n"); !slices.Equal(got, tt.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

// wrong is a file and what is said of it.
type wrong struct {
	name, text string
	want       []string
}

// outOfRange are files with values that nothing could be made of.
func outOfRange(step func(...string) string) []wrong {
	net := func(lines ...string) string {
		return "[[host]]\nname = \"kvm2\"\n[[network]]\nhost = \"kvm2\"\nname = \"n\"\ngateway = \"10.0.0.1/29\"\n" + strings.Join(lines, "\n") + "\n"
	}
	guest := func(lines ...string) string {
		return net() + "[[guest]]\nhost = \"kvm2\"\nname = \"p\"\n" + strings.Join(lines, "\n") + "\n"
	}
	const deep = "nested too deep; allowed: 16 levels"
	many := strings.Repeat
	return []wrong{
		{"lease_time", net(`lease_time = "1ns"`), []string{`x.toml:7: network 1: lease_time: 1ns is out of range; allowed: from "1s" on`}},
		{"lease_time, negative", net(`lease_time = "-1h"`), []string{`x.toml:7: network 1: lease_time: -1h0m0s is out of range; allowed: from "1s" on`}},
		{"jitter", guest(`jitter = "2562047h"`), []string{`x.toml:11: guest 1: jitter: "2562047h" is out of range; allowed: up to "8760h", a year`}},
		{"jitter, negative", guest(`jitter = "-5s"`), []string{"x.toml:11: guest 1: jitter: -5s is out of range; allowed: zero or more"}},
		{"delay, negative", guest(`delay = "-5s"`), []string{"x.toml:11: guest 1: delay: -5s is out of range; allowed: zero or more"}},
		{"boot", guest(`boot_agent = "9000h"`), []string{`x.toml:11: guest 1: boot_agent: "9000h" is out of range; allowed: up to "8760h", a year`}},
		{"for", step(`at = "1s"`, `what = "freeze"`, `whom = "kvm2"`, `for = "2562047h"`), []string{
			`x.toml:13: step 1: for: "2562047h" is out of range; allowed: up to "8760h", a year`}},
		{"clock", step(`at = "1s"`, `what = "clock"`, `whom = "kvm2"`, `by = "-2562047h"`), []string{
			`x.toml:13: step 1: by: "-2562047h" is out of range; allowed: up to "8760h", a year`}},
		{"addresses run out", guest(`bridge = "b"`, `count = 5`, `address = "255.255.255.254/24"`), []string{
			"x.toml:13: guest 1: address: 255.255.255.254/24 is followed by 1 more of its network, and there are 5 guests"}},
		{"addresses run out, IPv6", guest(`bridge = "b"`, `count = 5`, `address = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe/64"`), []string{
			"x.toml:13: guest 1: address: ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe/64 is followed by 1 more of its network, and there are 5 guests"}},
		{"a network is full", guest(`network = "n"`, `count = 7`), []string{
			`x.toml:12: guest 1: count: network "n" has 6 addresses after its host's, and 7 guests want one`}},
		{"a pool", step(`at = "1s"`, `what = "pool-size"`, `whom = "kvm2"`, `pool = "nope"`, `mib = 1`), []string{`x.toml:13: step 1: pool: unknown pool "nope"; allowed: default`}},
		{"a network", step(`at = "1s"`, `what = "undefine-network"`, `whom = "kvm2"`, `network = "nope"`), []string{`x.toml:13: step 1: network: unknown network "nope"; allowed: default`}},
		{"a network of a guest", step(`at = "1s"`, `what = "lease-again"`, `whom = "kvm2/p-07"`, `network = "nope"`, `address = "10.0.0.1/24"`), []string{
			`x.toml:13: step 1: network: unknown network "nope"; allowed: default`}},
		{"lists", "a = " + many("[", 3_000_000), []string{"x.toml:1: " + deep}},
		{"inline tables", "\n" + many("a = {", 600_000), []string{"x.toml:2: " + deep}},
		{"dotted key", many("a.", 1_000_000) + "a = 1", []string{"x.toml:1: " + deep}},
		{"dotted table", "[" + many("a.", 1_000_000) + "a]", []string{"x.toml:1: " + deep}},
		{"lists behind quotes", "a = \"\"\"x\"\"\"\"\nb = 'x'\nc = \"\\\"\"\nd = " + many("[", 3_000_000), []string{"x.toml:4: " + deep}},
		{"lists over lines", "a = " + many("[\n", 1_000_000), []string{"x.toml:17: " + deep}},
		{"lists behind a text without an end", "a = \"x\nb = " + many("[", 3_000_000), []string{"x.toml:2: " + deep}},
	}
}

func TestLoad_noRegularFile(t *testing.T) {
	for _, file := range []string{"/dev/zero", "."} {
		_, err := Load(file, nil)
		if err == nil || err.Error() != file+": cannot be read: it is not a regular file" {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestLoad_missing(t *testing.T) {
	_, err := Load("nothing.toml", nil)
	if err == nil || err.Error() != "nothing.toml: cannot be read: no such file or directory" {
		t.Errorf("error %v", err)
	}
}

// A file without hosts happens to those of another.
func TestParse_base(t *testing.T) {
	base := parse(t, small, nil)
	s := parse(t, "[[step]]\nat = \"1s\"\nwhat = \"crash\"\nwhom = \"kvm2/*\"\n", base)
	if got := s.hostNames(); !slices.Equal(got, []string{"kvm1", "kvm2"}) || !slices.Equal(s.steps[0].guests, []string{"kvm2/p-07"}) {
		t.Errorf("hosts %v, guests %v", got, s.steps[0].guests)
	}
	_, err := Parse("x.toml", []byte("[[guest]]\nhost = \"kvm2\"\nname = \"q\"\n"), base)
	if err == nil || !strings.Contains(err.Error(), "x.toml: has networks or guests, and no [[host]]") {
		t.Errorf("guests without hosts: %v", err)
	}
}

// Every action has its place in the example, so that none is left untried.
func TestExampleHasAll(t *testing.T) {
	s, err := Load("examples/all-faults.toml", nil)
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, st := range s.steps {
		used[st.What] = true
	}
	for _, a := range Actions() {
		if !used[a] {
			t.Errorf("the example does not have %q", a)
		}
	}
}

func TestFindLines(t *testing.T) {
	text := "\ufeff# [[step]]\ntitle = \"\"\"\n[[host]]\nname = \\\"\"\"\" # [[no]]\n[[host]] # one\n\"name\" = 'a[['\n" +
		"list = [\n  \"]\", # ]\n  \"b\",\n]\n\nnext = { a = \"}\", b = 2 }\n[[ host ]]\nname = '''\nx = 1'''\nlast = 1"
	want := map[place]int{
		{key: "title"}: 2, {table: "host"}: 5, {table: "host", key: "name"}: 6, {table: "host", key: "list"}: 7,
		{table: "host", key: "next"}: 12, {table: "host", n: 1}: 13, {table: "host", n: 1, key: "name"}: 14, {table: "host", n: 1, key: "last"}: 16,
	}
	got := findLines(text)
	for p, line := range want {
		if got[p] != line {
			t.Errorf("%+v is on line %d, want %d", p, got[p], line)
		}
	}
	if len(got) != len(want) {
		t.Errorf("found %v, want %v", got, want)
	}
}

// Whatever a file holds, reading it does not panic, and problems are one line each.
func FuzzParse(f *testing.F) {
	// Seeds are short: the fuzzer spends its time on making long ones shorter.
	f.Add("repeat = \"90s\"\n[[step]]\nat = \"8s\"\nwhat = \"agent-hang\"\nwhom = [\"a/b\"]\nfor = \"40s\"\n")
	f.Add(small + "[[step]]\nat = \"1s\"\nwhat = \"call-error\"\nwhom = \"kvm2\"\nproc = \"AuthList\"\ncode = 38\n")
	f.Add(small + "[[step]]\nat = \"1s\"\nwhat = \"address\"\nwhom = \"kvm2/[\"\naddress = []\n")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Count(text, "count") > 1 || len(text) > 4<<10 {
			return // thousands of guests are another test's
		}
		_, err := Parse("x.toml", []byte(text), nil)
		var ps Problems
		if err != nil && !errors.As(err, &ps) {
			t.Fatalf("error %v", err)
		}
		for _, p := range ps {
			if strings.ContainsAny(p.Error(), "\n\r") {
				t.Errorf("%q is more than one line", p.Error())
			}
		}
	})
}
