package api

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-project/holdfast/api/client"
	"github.com/holdfast-project/holdfast/internal/venue"
)

// The page docs/api.md is run from top to bottom, so that what it shows is what happens.
func TestDocumentedWalkThroughWorks(t *testing.T) {
	t.Parallel()
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no sh to run docs/api.md with")
	}
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl to run docs/api.md with")
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "api.md"))
	if err != nil {
		t.Fatal(err)
	}
	script := "set -eu\n"
	for i, block := range strings.Split(string(page), "\n```") {
		if code, ok := strings.CutPrefix(block, "sh\n"); ok && i%2 == 1 {
			script += code + "\n"
		}
	}

	w := newWorld(t)
	w.cinema("demo-cinema", nil)
	w.make(client.NewEvent{
		Kind: "concert", Slug: "demo-concert", LayoutID: w.layout(venue.Stadium(50_000)),
		Prices: map[string]int64{"Category 1": 14000, "Category 2": 9500, "Category 3": 6500, "Category 4": 4500},
	})
	w.festival("demo-festival", 20_000, nil)
	w.flight("demo-hf101-sgn-han", nil)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	go w.sim.Run(ctx)
	go w.relay.Run(ctx)

	run := exec.CommandContext(ctx, shell, "-c", script)
	run.Dir = t.TempDir()
	run.Env = append(os.Environ(), "URL="+w.url, "ADMIN_KEY="+adminKey)
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for what, n := range map[string]int{
		`"status":"cancelled"`: 1, `"refund":{"amount":1200,"currency":"EUR"}`: 1, `"state":"booked"`: 2, `"holder":"Charles Babbage"`: 1, `{"ok":true,"violations":[]}`: 1,
		`"title":"The Night Train (restored)"`: 1, `"pools":[{"pool":"STANDING","quantity":3}]`: 1, `event: snapshot`: 1,
	} {
		if got := strings.Count(string(out), what); got < n {
			t.Errorf("the output has %s %d times, want at least %d", what, got, n)
		}
	}
	if png, err := os.ReadFile(filepath.Join(run.Dir, "ticket.png")); err != nil || !strings.HasPrefix(string(png), "\x89PNG") {
		t.Errorf("ticket.png is no picture: %v", err)
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
}
