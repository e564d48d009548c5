package store

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"virdeck/model"
)

const (
	envChild = "VIRDECK_STORE_CHILD"
	envPath  = "VIRDECK_STORE_PATH"
)

// child is the process that gets killed. It prints a number only after the
// write of that number has been acknowledged.
func child(job, path string) int {
	var write func(worker, n int) error
	switch job {
	case "create":
		f, err := Open(path, "test", Options{})
		if err != nil {
			return complain(err)
		}
		fmt.Println(0)
		return complain(f.Close())
	case "store":
		f, err := Open(path, "test", Options{})
		if err != nil {
			return complain(err)
		}
		write = func(worker, n int) error { return f.Apply(context.Background(), crashChanges(worker, n)...) }
	case "audit":
		a, err := OpenAudit(path)
		if err != nil {
			return complain(err)
		}
		write = func(_, n int) error { return a.Append(crashEntry(n)) }
	case "full":
		return complain(untilFull(path))
	default:
		return complain(fmt.Errorf("no job %q", job))
	}
	var wg sync.WaitGroup
	const workers = 4
	for w := range workers {
		wg.Go(func() {
			for i := 0; ; i++ {
				n := i*workers + w
				if err := write(w, n); err != nil {
					os.Exit(complain(err))
				}
				fmt.Println(n)
			}
		})
	}
	wg.Wait()
	return 0
}

func complain(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// crashChanges are what one write consists of: three records that must be there
// together, and one that goes away.
func crashChanges(worker, n int) []Change {
	return []Change{
		PutProxy(Proxy{Name: crashName(n), UID: strconv.Itoa(n), Domain: strings.Repeat("x", n%3000)}),
		PinHost(model.HostName(crashName(n)), strconv.Itoa(n)),
		PutBudget(HostBudget(model.HostName(strconv.Itoa(worker))), []time.Time{time.Unix(int64(n), 0)}),
		DeleteProxy(crashName(n - 40)),
	}
}

func crashName(n int) model.ProxyName { return model.ProxyName("p-" + strconv.Itoa(n)) }

func crashEntry(n int) Entry {
	return Entry{By: "tester", Verb: "restart", Proxy: crashName(n), Phase: PhaseDone, Result: strings.Repeat("x", max(0, n)%3000)}
}

// killed runs a child until a random moment and returns what it had been told.
func killed(t *testing.T, job, path string, acks int) []int {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envChild+"="+job, envPath+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var acked []int
	kill := time.Duration(rand.Int64N(int64(40 * time.Millisecond))) // from before the file is there
	lines := bufio.NewScanner(out)
	if acks == 0 {
		time.AfterFunc(kill, func() { _ = cmd.Process.Signal(syscall.SIGKILL) })
	}
	for lines.Scan() {
		n, err := strconv.Atoi(lines.Text())
		if err != nil {
			break // the line that the kill cut short was never heard
		}
		acked = append(acked, n)
		if len(acked) == acks {
			time.AfterFunc(kill/16, func() { _ = cmd.Process.Signal(syscall.SIGKILL) })
		}
	}
	if err := cmd.Wait(); err == nil && job != "create" {
		t.Fatal("the child ended by itself")
	} else if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); job != "create" && (!ok || ws.Signal() != syscall.SIGKILL) {
		t.Fatalf("the child: %v", err)
	}
	return acked
}

// crashes is how many processes a crash test kills.
func crashes() int {
	if soak() {
		return 200
	}
	return 20
}

func soak() bool { return os.Getenv("VIRDECK_SOAK") == "1" }

func TestCrash_nothingAcknowledgedIsLost(t *testing.T) {
	total, open := 0, 0
	for i := range crashes() {
		path := filepath.Join(t.TempDir(), strconv.Itoa(i), "virdeck.db")
		acked := killed(t, "store", path, rand.IntN(60))
		total += len(acked)
		f := mustOpen(t, path)
		s := mustLoad(t, f)
		newest := map[int]int{} // by worker
		for _, n := range acked {
			newest[n%4] = max(newest[n%4], n)
			if s.Hosts[model.HostName(crashName(n))] != strconv.Itoa(n) {
				t.Errorf("run %d: host record %d was acknowledged and is lost", i, n)
			}
			// A later write that was made and not heard of may have removed it.
			_, there := s.Proxies[crashName(n)]
			_, removed := s.Hosts[model.HostName(crashName(n+40))]
			if there == removed {
				t.Errorf("run %d: proxy %d: there %t, removed %t", i, n, there, removed)
			}
		}
		for w, n := range newest {
			if at := s.Budget[HostBudget(model.HostName(strconv.Itoa(w)))]; len(at) != 1 || at[0].Unix() < int64(n) {
				t.Errorf("run %d: budget of worker %d: %v, want %d or later", i, w, at, n)
			}
		}
		for h, n := range s.Hosts { // atomic, the unacknowledged ones too
			k, err := strconv.Atoi(n)
			_, later := s.Hosts[model.HostName(crashName(k+40))]
			if p, ok := s.Proxies[model.ProxyName(h)]; err != nil || ok == later || ok && p.UID != n {
				t.Errorf("run %d: write %s was made in part", i, n)
			}
		}
		if len(s.Hosts) > len(acked) {
			open++
		}
		mustClose(t, f)
	}
	t.Logf("%d kills, %d acknowledged writes all there; %d kills found writes made and not heard of", crashes(), total, open)
}

func TestCrash_whileItIsMade(t *testing.T) {
	made := 0
	for i := range crashes() {
		path := filepath.Join(t.TempDir(), strconv.Itoa(i), "virdeck.db")
		killed(t, "create", path, 0)
		if _, err := os.Stat(path); err == nil {
			made++
		}
		f := mustOpen(t, path)
		if s := mustLoad(t, f); s.Fleet != "test" {
			t.Errorf("run %d: %+v", i, s)
		}
		mustClose(t, f)
	}
	t.Logf("%d kills, %d of them after the file was made", crashes(), made)
}

func TestCrash_auditLog(t *testing.T) {
	total, torn := 0, 0
	path := filepath.Join(t.TempDir(), "audit.log") // one log through all crashes
	for i := range crashes() {
		before, err := ReadAudit(path, 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		acked := killed(t, "audit", path, rand.IntN(60))
		total += len(acked)
		a, err := OpenAudit(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Append(crashEntry(-1)); err != nil {
			t.Fatal(err)
		}
		all, err := a.Last(1 << 30)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[model.ProxyName]bool{}
		for _, e := range all[len(before):] {
			seen[e.Proxy] = true
			if e.Phase == PhaseUnreadable {
				torn++
			}
		}
		for _, n := range append(acked, -1) {
			if !seen[crashName(n)] {
				t.Errorf("run %d: entry %d was acknowledged and is lost", i, n)
			}
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d kills, %d acknowledged lines all there, %d lines cut short", crashes(), total, torn)
}
