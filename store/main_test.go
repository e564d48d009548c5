package store

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

// TestMain is also the process that is killed: see crash_test.go.
func TestMain(m *testing.M) {
	if job := os.Getenv(envChild); job != "" {
		os.Exit(child(job, os.Getenv(envPath)))
	}
	goleak.VerifyTestMain(m)
}

// at returns a path for a store in a directory of the test's own.
func at(t testing.TB) string { return filepath.Join(t.TempDir(), "state", "virdeck.db") }

func mustOpen(t testing.TB, path string) *File {
	t.Helper()
	f, err := Open(path, "test", Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mustClose(t, f) })
	return f
}

func mustClose(t testing.TB, f *File) {
	t.Helper()
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

func mustLoad(t testing.TB, f *File) State {
	t.Helper()
	s, err := f.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustApply(t testing.TB, f *File, changes ...Change) {
	t.Helper()
	if err := f.Apply(t.Context(), changes...); err != nil {
		t.Fatal(err)
	}
}

func mustRead(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func mustWrite(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func wantError(t testing.TB, err error, want string) {
	t.Helper()
	if err == nil || err.Error() != want {
		t.Errorf("error\n%v, want\n%s", err, want)
	}
}
