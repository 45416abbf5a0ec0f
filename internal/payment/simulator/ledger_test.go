package simulator

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-project/holdfast/internal/payment"
)

func TestATornLastLineIsForgottenAndNothingElse(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger")
	c := Config{Path: path, Now: newClock().Now}
	s := open(t, c)
	mustOpen(t, s, "p1")
	mustAct(t, s, "p1", Action{Outcome: Succeed})
	if err := s.CloseLedger(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first := strings.IndexByte(string(whole), '\n') + 1
	for n := first; n < len(whole); n++ {
		if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		s := open(t, c)
		wantState(t, s, "p1", payment.State{Status: payment.Pending, Charged: eur(0), Refunded: eur(0)})
		mustAct(t, s, "p1", Action{Outcome: Succeed}) // the next line must not be glued to the torn one
		if err := s.CloseLedger(); err != nil {
			t.Fatal(err)
		}
		again := open(t, c)
		wantState(t, again, "p1", payment.State{Status: payment.Succeeded, Charged: eur12, Refunded: eur(0)})
		if err := again.CloseLedger(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestADamagedLedgerIsRefused(t *testing.T) {
	t.Parallel()
	const openLine = `{"kind":"open","payment":"p1","at":"2026-06-01T20:00:00Z","until":"2026-06-01T20:08:00Z","money":{"amount":1,"currency":"EUR"}}` + "\n"
	for name, text := range map[string]string{
		"not a record":           "garbage\n" + openLine,
		"opened twice":           openLine + openLine,
		"closed before opened":   `{"kind":"close","payment":"p1","at":"2026-06-01T20:00:00Z"}` + "\n",
		"a kind from the future": openLine + `{"kind":"dispute","payment":"p1","at":"2026-06-01T20:00:00Z"}` + "\n",
		"a line without an end":  strings.Repeat("x", maxLineBytes+1),
	} {
		path := filepath.Join(t.TempDir(), "ledger")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := New(Config{
			Path: path, Now: newClock().Now, Secrets: []payment.Secret{payment.NewSecret()},
			CallbackURL: func() string { return "" }, PayURL: func(string) string { return "" },
		})
		if !errors.Is(err, ErrLedger) {
			t.Errorf("%s: %v", name, err)
		}
		if after, _ := os.ReadFile(path); string(after) != text {
			t.Errorf("%s: the file was changed", name)
		}
	}
}

func TestWhatCannotBeWrittenDoesNotHappen(t *testing.T) {
	t.Parallel()
	s := open(t, Config{Path: filepath.Join(t.TempDir(), "ledger"), Now: newClock().Now})
	mustOpen(t, s, "p1")
	if err := s.CloseLedger(); err != nil {
		t.Fatal(err)
	}
	if err := s.Act(t.Context(), "p1", Action{Outcome: Succeed}); !errors.Is(err, payment.ErrUnavailable) {
		t.Error(err)
	}
	if _, err := s.Open(t.Context(), request("p2")); !errors.Is(err, payment.ErrUnavailable) {
		t.Error(err)
	}
	wantState(t, s, "p1", payment.State{Status: payment.Pending, Charged: eur(0), Refunded: eur(0)})
	wantState(t, s, "p2", payment.State{Status: payment.Unknown})
}

const chargeForEver = "HOLDFAST_TEST_SIMULATOR_LEDGER"

// C-40: everything that the provider has acknowledged is in its books after kill -9, and nothing twice.
func TestChargesSurviveAKill(t *testing.T) {
	if path := os.Getenv(chargeForEver); path != "" {
		charge(t, path)
		return
	}
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger")
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChargesSurviveAKill$")
	child.Env = append(os.Environ(), chargeForEver+"="+path)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var acknowledged []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		acknowledged = append(acknowledged, lines.Text())
		if len(acknowledged) == 300 {
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = child.Wait() // killed
	if len(acknowledged) < 300 {
		t.Fatalf("the child acknowledged %d charges only", len(acknowledged))
	}
	s := open(t, Config{Path: path, Now: newClock().Now})
	for _, id := range acknowledged {
		wantState(t, s, id, payment.State{Status: payment.Succeeded, Charged: eur12, Refunded: eur(100)})
	}
	// One more may have been charged without its acknowledgement having come out.
	totals := s.Totals()
	if extra := totals.Paid - len(acknowledged); extra < 0 || extra > 1 {
		t.Errorf("%d paid, %d acknowledged", totals.Paid, len(acknowledged))
	}
	if d := cmp.Diff(map[string]int64{"EUR": int64(totals.Paid) * 1200}, totals.Charged); d != "" {
		t.Errorf("charged (-want +got):\n%s", d)
	}
	if err := s.CloseLedger(); err != nil {
		t.Fatal(err)
	}
}

func charge(t *testing.T, path string) {
	s := open(t, Config{Path: path, Now: newClock().Now})
	for n := range 1_000_000 {
		id := fmt.Sprint("p", n)
		mustOpen(t, s, id)
		mustAct(t, s, id, Action{Outcome: Succeed, Callbacks: 1, Delay: time.Minute})
		if err := s.Refund(t.Context(), refundOf(id, "r"+id, 100)); err != nil {
			t.Fatal(err)
		}
		fmt.Println(id)
	}
}
