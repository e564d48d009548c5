// Package lock keeps those who want the machine's one lab apart: whoever brings
// the lab up takes down the one that runs. It knows nothing of the lab itself.
package lock

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// path is beside what the lab keeps for the whole machine.
const path = "/run/virdeck-lab.lock"

// Take waits until no other test has the lab, and takes it until the returned
// function is called or the process ends. Programs that the holder starts do not
// inherit it. It says on standard error when it has to wait.
func Take() (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
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
		return nil, errors.Join(fmt.Errorf("the lab's lock %s: %w", path, err), f.Close())
	}
	return func() { _ = f.Close() }, nil // which lets go of it
}
