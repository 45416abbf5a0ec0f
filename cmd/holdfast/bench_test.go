package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-project/holdfast/internal/identity"
	"github.com/holdfast-project/holdfast/internal/loadgen"
)

// built is this program, for tests that need it as a process of its own. It is built once and removed with the tests' folder of temporary files.
var built struct {
	sync.Once
	path string
	err  error
}

func program(t *testing.T) string {
	t.Helper()
	built.Do(func() {
		var dir string
		if dir, built.err = os.MkdirTemp("", "holdfast-test-"); built.err != nil {
			return
		}
		built.path = filepath.Join(dir, "holdfast")
		var out []byte
		if out, built.err = exec.CommandContext(t.Context(), "go", "build", "-o", built.path, ".").CombinedOutput(); built.err != nil {
			built.err = errors.Join(built.err, errors.New(string(out)))
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.path
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		// A bench inside of a test would start these tests as its server, and they another.
		fmt.Fprintln(os.Stderr, "tests are no server: start the program that is built for them")
		os.Exit(exitUsage)
	}
	code := m.Run()
	if built.path != "" {
		_ = os.RemoveAll(filepath.Dir(built.path)) // what is left is among the system's temporary files
	}
	os.Exit(code)
}

func TestBenchStartsItsOwnServerMeasuresAuditsAndLeavesNothing(t *testing.T) {
	t.Parallel()
	for scenario, args := range map[string][]string{
		"lastseat": {"--clients", "40", "--rounds", "5"},
		"holds":    {"--clients", "8", "--rounds", "2", "--duration", "100ms"},
		"refusals": {"--clients", "8", "--rounds", "2", "--duration", "100ms"},
		"seatmap":  {"--clients", "8", "--rounds", "2", "--duration", "100ms"},
	} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			temp := t.TempDir()
			c := exec.CommandContext(t.Context(), program(t), append([]string{"bench", "--scenario", scenario, "--format", "json", "--seed", "7", "--temp", temp}, args...)...)
			var complaints bytes.Buffer
			c.Stderr = &complaints
			out, err := c.Output()
			if err != nil {
				t.Fatalf("%v\n%s\n%s", err, out, complaints.String())
			}
			var r loadgen.Report
			if err := json.Unmarshal(out, &r); err != nil {
				t.Fatal(err)
			}
			if !r.OK || len(r.Rounds) == 0 || r.Rounds[0].Floor == nil || r.Ratio == nil || len(r.Audits) == 0 || !r.Audits[0].OK || r.Settings.Seed != 7 || r.Environment.Cores == 0 {
				t.Errorf("a report that says too little: %s", out)
			}
			if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

func TestAnInterruptedBenchStopsItsServerAndRemovesItsData(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	c := exec.CommandContext(t.Context(), program(t), "bench", "--scenario", "holds", "--duration", "1m", "--temp", temp)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ready := func() bool {
		found, err := filepath.Glob(filepath.Join(temp, "*", "*.ready"))
		return err == nil && len(found) > 0
	}
	for end := time.Now().Add(30 * time.Second); !ready(); wait(t.Context(), 20*time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no server was started")
		}
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err == nil || c.ProcessState.ExitCode() != exitFailed {
		t.Errorf("ended with %v\n%s", err, out.String())
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v\n%s", left, err, out.String())
	}
}

func TestFloorsAreOnlyThereForABench(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]int{"--bench-floor=true": http.StatusNoContent, "--bench-floor=false": http.StatusNotFound} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			s, err := startChild(t.Context(), childConfig{
				Program: program(t), Dir: t.TempDir(), Data: "data", AdminKey: identity.NewAdminKey(), Flags: []string{"--payments", "simulator", flag},
			})
			if err != nil {
				t.Fatal(err)
			}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+loadgen.FloorPath, nil)
			if err != nil {
				t.Fatal(err)
			}
			w, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			w.Body.Close()
			if w.StatusCode != want {
				t.Errorf("answered %s, not %d", w.Status, want)
			}
			if err := s.stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestBenchSaysWhatIsWrongWithItsFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--scenario", "nothing"}, {}, {"--scenario", "holds", "--format", "xml"}, {"--scenario", "holds", "--target", "http://127.0.0.1:1", "--", "--lanes", "2"},
		{"--scenario", "holds", "--clients", "100000"}, {"--scenario", "holds", "--target", "no address"},
	} {
		root := newRoot()
		root.SetArgs(append([]string{"bench"}, args...))
		root.SetOut(&bytes.Buffer{})
		root.SetErr(&bytes.Buffer{})
		if err := root.ExecuteContext(t.Context()); !errors.Is(err, errUsage) {
			t.Errorf("%s: %v is no complaint about usage", strings.Join(args, " "), err)
		}
	}
}
