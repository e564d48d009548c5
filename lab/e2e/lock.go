package e2e

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lockPath is beside what the lab keeps for the whole machine.
const lockPath = "/run/virdeck-lab.lock"

// Lock waits until no other test has the machine's one lab, and takes it until
// the returned function is called or the process ends. Whoever brings the lab up
// takes down the one that runs, so two without a lock would ruin each other.
// Programs that the holder starts do not inherit it. It says on standard error
// when it has to wait.
func Lock() (unlock func(), err error) {
	f, err := os.OpenFile(lockPath, os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the lab's lock: %w", err)
	}
	fd := int(f.Fd())
	err = syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		fmt.Fprintln(os.Stderr, "lab: another test has it; waiting")
		err = syscall.Flock(fd, syscall.LOCK_EX)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the lab's lock %s: %w", lockPath, err), f.Close())
	}
	return func() { _ = f.Close() }, nil // which lets go of it
}
