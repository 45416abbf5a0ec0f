package catalog

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestPresetsAreThoseOfTheTable(t *testing.T) {
	t.Parallel()
	for kind, want := range map[Kind]struct {
		hold, payment, buffer, ceiling time.Duration
		places                         int
		room                           bool
	}{
		Cinema:  {10 * time.Minute, 8 * time.Minute, 2 * time.Minute, 20 * time.Minute, 8, false},
		Concert: {5 * time.Minute, 4 * time.Minute, time.Minute, 10 * time.Minute, 4, true},
		Flight:  {10 * time.Minute, 8 * time.Minute, 2 * time.Minute, 20 * time.Minute, 9, false},
	} {
		p := Preset(kind)
		if p.HoldTTL != want.hold || p.PaymentTTL != want.payment || p.Buffer() != want.buffer || p.Ceiling != want.ceiling || p.MaxPlacesPerHold != want.places || p.WaitingRoom.Enabled != want.room {
			t.Errorf("%s: %+v", kind, p)
		}
		if p.MaxHoldsPerMinute != 5 || p.WaitingRoom.PerSecond != 2000 || p.WaitingRoom.MaxActive != 5000 || p.WaitingRoom.PassTTL != 10*time.Minute {
			t.Errorf("%s: %+v", kind, p)
		}
		var c checks
		if c.policy(&p); c.err() != nil {
			t.Errorf("the preset of %s: %v", kind, c.err())
		}
	}
}

func TestAPolicyLiesOverItsPreset(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		json string
		want func(*Policy)
	}{
		{`{}`, func(*Policy) {}},
		{`{"holdSeconds": 5}`, func(p *Policy) { p.HoldTTL, p.PaymentTTL = 5*time.Second, 4*time.Second }},
		{`{"holdSeconds": 1}`, func(p *Policy) { p.HoldTTL, p.PaymentTTL = time.Second, time.Second }},
		{`{"holdSeconds": 3}`, func(p *Policy) { p.HoldTTL, p.PaymentTTL = 3*time.Second, 2*time.Second }},
		{`{"holdSeconds": 480}`, func(p *Policy) { p.HoldTTL, p.PaymentTTL = 480*time.Second, 384*time.Second }},
		{`{"holdSeconds": 900}`, func(p *Policy) { p.HoldTTL = 900 * time.Second }},
		{`{"holdSeconds": 1800}`, func(p *Policy) { p.HoldTTL, p.Ceiling = 1800*time.Second, 1800*time.Second }},
		{`{"holdSeconds": 60, "paymentSeconds": 60, "holdCeilingSeconds": 60, "extendSeconds": 0}`, func(p *Policy) {
			p.HoldTTL, p.PaymentTTL, p.Ceiling, p.ExtendTTL = time.Minute, time.Minute, time.Minute, 0
		}},
		{`{"maxPlacesPerHold": 20}`, func(p *Policy) { p.MaxPlacesPerHold, p.MaxPlacesPerCustomer = 20, 20 }},
		{`{"maxPlacesPerHold": 2, "maxPlacesPerCustomer": 6, "maxHoldsPerMinute": 50}`, func(p *Policy) { p.MaxPlacesPerHold, p.MaxPlacesPerCustomer, p.MaxHoldsPerMinute = 2, 6, 50 }},
		{`{"waitingRoom": {"enabled": true}}`, func(p *Policy) { p.WaitingRoom.Enabled = true }},
		{`{"waitingRoom": {"perSecond": 7, "maxActive": 8, "passSeconds": 30, "opensSecondsBefore": 0}}`, func(p *Policy) {
			p.WaitingRoom = WaitingRoom{PerSecond: 7, MaxActive: 8, PassTTL: 30 * time.Second}
		}},
		{`{"cancellation": []}`, func(p *Policy) { p.Cancellation = []CancellationRule{} }},
		{`{"cancellation": [{"untilSecondsBefore": 3600, "refundPercent": 80}, {"untilSecondsBefore": 0, "refundPercent": 10}], "orphans": "forbid"}`, func(p *Policy) {
			p.Cancellation, p.Orphans = []CancellationRule{{time.Hour, 80}, {0, 10}}, OrphansForbid
		}},
	} {
		var d PolicyDraft
		if err := json.Unmarshal([]byte(test.json), &d); err != nil {
			t.Fatal(err)
		}
		got, want := Preset(Cinema), Preset(Cinema)
		d.over(&got)
		test.want(&want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", test.json, diff)
		}
		var c checks
		if c.policy(&got); c.err() != nil {
			t.Errorf("%s: %v", test.json, c.err())
		}
	}
}

// Whoever gives one field only, within its own bounds, is never told of another.
func TestOneFieldOfAPolicyIsEnough(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := Preset(rapid.SampledFrom([]Kind{Cinema, Concert, Flight}).Draw(t, "kind"))
		hold := rapid.Int64Range(1, int64(MaxTTL/time.Second)).Draw(t, "hold")
		d := PolicyDraft{HoldSeconds: &hold}
		d.over(&p)
		var c checks
		if c.policy(&p); c.err() != nil {
			t.Fatal(c.err())
		}
		if p.PaymentTTL%time.Second != 0 || p.PaymentTTL > p.HoldTTL || hold >= 5 && p.Buffer() < time.Second {
			t.Fatalf("a hold of %d s has %v to pay", hold, p.PaymentTTL)
		}
	})
}

func TestRefundsFollowTheFirstRuleThatFits(t *testing.T) {
	t.Parallel()
	p := Preset(Cinema)
	for left, want := range map[time.Duration]int{
		72 * time.Hour: 100, 24 * time.Hour: 100, 24*time.Hour - 1: 50, 2 * time.Hour: 50, 2*time.Hour - 1: 0, 0: 0, -time.Hour: 0,
	} {
		if got := p.RefundPercent(left); got != want {
			t.Errorf("%v before the start: %d %%, want %d", left, got, want)
		}
	}
	if got := (Policy{}).RefundPercent(time.Hour); got != 0 {
		t.Errorf("without rules %d %%", got)
	}
}

// Whatever a policy's fields say, it either is refused or its holds can be placed, paid and ended.
func TestAPolicyThatIsAcceptedCanBeSoldBy(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		seconds := func(label string) *int64 {
			return rapid.Ptr(rapid.OneOf(rapid.Int64Range(-2, 20), rapid.Int64Range(250, 90_000), rapid.Int64()), true).Draw(t, label)
		}
		number := func(label string) *int {
			return rapid.Ptr(rapid.OneOf(rapid.IntRange(-2, 20), rapid.Int()), true).Draw(t, label)
		}
		p := Preset(rapid.SampledFrom([]Kind{Cinema, Concert, Flight}).Draw(t, "kind"))
		d := PolicyDraft{
			HoldSeconds: seconds("hold"), PaymentSeconds: seconds("payment"), ExtendSeconds: seconds("extend"), HoldCeilingSeconds: seconds("ceiling"),
			MaxPlacesPerHold: number("per hold"), MaxPlacesPerCustomer: number("per customer"), MaxHoldsPerMinute: number("per minute"),
		}
		d.over(&p)
		var c checks
		if c.policy(&p); c.err() != nil {
			return
		}
		if p.HoldTTL < time.Second || p.PaymentTTL <= 0 || p.PaymentTTL > p.HoldTTL || p.Buffer() != p.HoldTTL-p.PaymentTTL || p.Ceiling < p.HoldTTL ||
			p.Ceiling > MaxCeiling || p.ExtendTTL < 0 || p.MaxPlacesPerHold < 1 || p.MaxPlacesPerCustomer < 1 || p.MaxHoldsPerMinute < 1 {
			t.Fatalf("accepted %+v", p)
		}
	})
}
