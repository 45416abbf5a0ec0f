//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lockData makes this the only server on a data folder: boards, payments of the simulator and loops of two would not know of each other. The lock goes
// with the process, however it ends.
func lockData(dir string) (unlock func() error, err error) {
	f, err := os.OpenFile(filepath.Join(dir, "holdfast.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w: --data: %w", errUsage, err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errors.Join(fmt.Errorf("%w: --data: another server runs on %s; stop it, or give another folder", errUsage, dir), f.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", dir, err), f.Close())
	}
	return f.Close, nil
}
