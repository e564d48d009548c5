package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func openAudit(t *testing.T, path string) *Audit {
	t.Helper()
	a, err := OpenAudit(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(a.Close(), a.Close()); err != nil {
			t.Error(err)
		}
	})
	return a
}

func note(t *testing.T, a *Audit, by string) {
	t.Helper()
	if err := a.Append(Entry{By: by, Verb: "drain", Phase: PhaseDone}); err != nil {
		t.Fatal(err)
	}
}

// authors are who stands in the newest n lines.
func authors(t *testing.T, a *Audit, n int) string {
	t.Helper()
	all, err := a.Last(n)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range all {
		if e.Phase == PhaseUnreadable {
			e.By = "<" + e.Result + ">"
		}
		out = append(out, e.By)
	}
	return strings.Join(out, " ")
}

func TestAudit_line(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "audit.log")
	a := openAudit(t, path)
	e := Entry{
		At: time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600)), By: "ann", Key: "SHA256:abc", Address: "192.0.2.7:5000",
		Verb: "restart", Host: "beelink", Proxy: "p-01", Phase: PhaseFailed, Result: "two\nlines \x1b[31m",
	}
	if err := a.Append(e); err != nil {
		t.Fatal(err)
	}
	const want = `{"at":"2026-01-02T02:04:05.000000006Z","by":"ann","key":"SHA256:abc","address":"192.0.2.7:5000","verb":"restart",` +
		`"host":"beelink","proxy":"p-01","phase":"failed","result":"two\nlines \u001b[31m"}` + "\n"
	if got := string(mustRead(t, path)); got != want {
		t.Errorf("line\n%s, want\n%s", got, want)
	}
	got, err := a.Last(5)
	e.At = e.At.UTC()
	if d := cmp.Diff([]Entry{e}, got); d != "" || err != nil {
		t.Errorf("%v %s", err, d)
	}
	if fi, err := os.Stat(path); err != nil || fi.Mode() != 0o600 {
		t.Errorf("mode %v, %v", fi.Mode(), err)
	}
	if err := a.Append(Entry{Result: strings.Repeat("ä", 3000)}); err != nil {
		t.Fatal(err)
	}
	if got, err := a.Last(1); err != nil || got[0].Result != strings.Repeat("ä", 2048)+"..." {
		t.Errorf("%d bytes, %v", len(got[0].Result), err)
	}
}

func TestAudit_last(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	if all, err := ReadAudit(path, 5); err != nil || len(all) != 0 {
		t.Errorf("no log: %v, %v", all, err)
	}
	a := openAudit(t, path)
	var want []string
	for i := range 300 { // 300 lines, more than what is read at a time
		by := fmt.Sprintf("%d-%s", i, strings.Repeat("x", i*7%900))
		note(t, a, by)
		want = append(want, by)
	}
	if fi, err := os.Stat(path); err != nil || fi.Size() < 2*readChunk {
		t.Fatalf("log of %d bytes: %v", fi.Size(), err)
	}
	for _, n := range []int{0, 1, 2, 150, 299, 300, 301, 1 << 40} {
		if got := authors(t, a, n); got != strings.Join(want[max(0, len(want)-n):], " ") {
			t.Errorf("last %d: %.200s", n, got)
		}
	}
}

func TestAudit_repairsTheLastLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	note(t, openAudit(t, path), "a")
	whole := mustRead(t, path)
	mustWrite(t, path, append(whole, `{"at":"2026`...))
	b := openAudit(t, path)
	if got := authors(t, b, 9); got != `a <{"at":"2026>` {
		t.Errorf("before: %s", got)
	}
	note(t, b, "b")
	note(t, b, "c")
	if got := authors(t, b, 9); got != `a <{"at":"2026> b c` {
		t.Errorf("after: %s", got)
	}
	if n := strings.Count(string(mustRead(t, path)), "\n"); n != 4 {
		t.Errorf("%d lines", n)
	}
}

func TestAudit_followsItsName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	a := openAudit(t, path)
	note(t, a, "a")
	if err := os.Rename(path, path+".1"); err != nil { // logrotate
		t.Fatal(err)
	}
	note(t, a, "b")
	if err := os.Truncate(path, 0); err != nil { // logrotate, copytruncate
		t.Fatal(err)
	}
	note(t, a, "c")
	mustWrite(t, path+".new", []byte("by hand, without an end")) // another file in its place
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	note(t, a, "d")
	if got := authors(t, a, 9); got != "<by hand, without an end> d" {
		t.Errorf("log: %s", got)
	}
	if old, err := ReadAudit(path+".1", 9); err != nil || len(old) != 1 || old[0].By != "a" {
		t.Errorf("rotated: %v, %v", old, err)
	}
}

func TestAudit_manyAtOnce(t *testing.T) {
	a := openAudit(t, filepath.Join(t.TempDir(), "audit.log"))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				note(t, a, strings.Repeat("x", 5000))
				if _, err := a.Last(3); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := authors(t, a, 1000); got != strings.TrimSuffix(strings.Repeat(strings.Repeat("x", 5000)+" ", 160), " ") {
		t.Errorf("%d bytes", len(got))
	}
}

func TestAudit_errors(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.log")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := OpenAudit(path)
	wantError(t, err, "audit "+path+": open "+path+": is a directory")
	_, err = OpenAudit("/dev/null")
	wantError(t, err, "audit /dev/null: not a regular file")
	other := filepath.Join(dir, "other.log")
	a := openAudit(t, other)
	whole := a.f
	if a.f, err = os.Open(other); err != nil { // which cannot be written
		t.Fatal(err)
	}
	wantError(t, a.Append(Entry{}), "audit "+other+": write "+other+": bad file descriptor")
	if err := a.f.Close(); err != nil {
		t.Fatal(err)
	}
	a.f = whole
	note(t, a, "after")
	if got := authors(t, a, 9); got != "after" {
		t.Errorf("log: %s", got)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	wantError(t, a.Append(Entry{}), "store: closed")
}
