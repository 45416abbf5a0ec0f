package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Limits of a started server.
const (
	childStart = 60 * time.Second // until it is ready
	childStop  = 30 * time.Second // from being asked to end
	childTail  = 4096             // bytes of its log that are shown when it fails
)

// childConfig says which server to start.
type childConfig struct {
	Program  string // empty: this one
	Dir      string // for its ready file and its log
	Data     string // folder of its database, inside Dir
	AdminKey string
	Flags    []string
}

// child is a server in a process of its own.
type child struct {
	url    string
	ops    string // where operators look; the same without --ops-listen
	log    string // file
	cmd    *exec.Cmd
	exited chan struct{}
	err    error // of Wait, once exited is closed
}

// startChild starts a server on a free port and waits until it is ready. Of one that did not get ready, nothing is left running.
func startChild(ctx context.Context, c childConfig) (*child, error) {
	program := c.Program
	if program == "" {
		var err error
		if program, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	ready := filepath.Join(c.Dir, c.Data+".ready")
	if err := os.Remove(ready); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	s := &child{log: filepath.Join(c.Dir, c.Data+".log"), exited: make(chan struct{})}
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has it open, too
	// Not CommandContext, which kills: a server is asked to stop.
	s.cmd = exec.Command(program, append([]string{ //nolint:noctx // see above
		"serve", "--listen", "127.0.0.1:0", "--data", filepath.Join(c.Dir, c.Data), "--ready-file", ready,
	}, c.Flags...)...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	// Settings of whoever runs this are not for this server.
	s.cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "HOLDFAST_") }), "HOLDFAST_ADMIN_KEY="+c.AdminKey)
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		s.err = s.cmd.Wait()
		close(s.exited)
	}()
	if err := s.awaitReady(ctx, ready); err != nil {
		return nil, errors.Join(fmt.Errorf("starting a server: %w%s", err, s.tail()), s.kill())
	}
	return s, nil
}

func (s *child) awaitReady(ctx context.Context, file string) error {
	ctx, cancel := context.WithTimeout(ctx, childStart)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if data, err := os.ReadFile(file); err == nil {
			s.url, s.ops, _ = strings.Cut(strings.TrimSpace(string(data)), "\n")
			if answersReady(ctx, s.ops) {
				return nil
			}
		}
		select {
		case <-s.exited:
			return fmt.Errorf("it ended: %w", s.err)
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func answersReady(ctx context.Context, url string) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
	if err != nil {
		return false
	}
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second}
	w, err := c.Do(r)
	if err != nil {
		return false
	}
	return w.StatusCode == http.StatusOK && w.Body.Close() == nil
}

// stop asks the server to end and says whether it did so in order. After a Ctrl-C in a terminal the server has had the signal, too.
func (s *child) stop() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // where that can't be sent, or it has ended, the following sees it
	t := time.NewTimer(childStop)
	defer t.Stop()
	select {
	case <-s.exited:
	case <-t.C:
		return errors.Join(fmt.Errorf("the server did not stop within %v%s", childStop, s.tail()), s.kill())
	}
	if s.err != nil {
		return fmt.Errorf("the server ended badly: %w%s", s.err, s.tail())
	}
	return nil
}

// kill ends the server at once, as a power failure would.
func (s *child) kill() error {
	err := s.cmd.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	<-s.exited
	return err
}

// tail is the end of the server's log.
func (s *child) tail() string {
	data, err := os.ReadFile(s.log)
	if err != nil || len(data) == 0 {
		return ""
	}
	return "; its last words:\n" + string(data[max(0, len(data)-childTail):])
}
