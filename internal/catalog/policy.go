package catalog

import "time"

// Orphans says what happens to a choice of seats that would leave a single seat alone between taken ones.
type Orphans string

// The values of Orphans.
const (
	OrphansAllow  Orphans = "allow"
	OrphansAvoid  Orphans = "avoid"  // best available avoids them, a free choice may leave them
	OrphansForbid Orphans = "forbid" // a free choice that leaves one is refused
)

// Policy is how an event sells. All of it is data: presets per kind, every field may differ per event. Its JSON is how stores keep it, with durations
// in nanoseconds; the wire has a shape of its own.
type Policy struct {
	HoldTTL    time.Duration `json:"holdTTL"`    // how long a hold lives when placed
	PaymentTTL time.Duration `json:"paymentTTL"` // how long a payment session lives; shorter than the hold by Buffer
	ExtendTTL  time.Duration `json:"extendTTL"`  // what one "more time" adds; 0 = not offered
	Ceiling    time.Duration `json:"ceiling"`    // the longest that a hold may live from its placing, with every prolongation

	MaxPlacesPerHold     int `json:"maxPlacesPerHold"`
	MaxPlacesPerCustomer int `json:"maxPlacesPerCustomer"` // over all holds and bookings of the event
	MaxHoldsPerMinute    int `json:"maxHoldsPerMinute"`    // per customer; replacing an own hold has MaxReplacesPerMinute

	WaitingRoom  WaitingRoom        `json:"waitingRoom"`
	Cancellation []CancellationRule `json:"cancellation"` // sorted by time left, longest first
	Orphans      Orphans            `json:"orphans"`
}

// MaxReplacesPerMinute is how often a customer may change the choice of seats by replacing a hold.
const MaxReplacesPerMinute = 60

// WaitingRoom is the pace at which an event lets people in.
type WaitingRoom struct {
	Enabled     bool          `json:"enabled"`
	PerSecond   int           `json:"perSecond"`
	MaxActive   int           `json:"maxActive"`
	PassTTL     time.Duration `json:"passTTL"`
	OpensBefore time.Duration `json:"opensBefore"` // joining opens so long before the sale
}

// CancellationRule refunds RefundPercent of the price when the event starts at least UntilBefore later.
type CancellationRule struct {
	UntilBefore   time.Duration `json:"untilBefore"`
	RefundPercent int           `json:"refundPercent"`
}

// Buffer is the time between the end of a payment session and the end of its hold: it lets most callbacks arrive in time.
func (p Policy) Buffer() time.Duration { return max(0, p.HoldTTL-p.PaymentTTL) }

// RefundPercent is what a cancellation pays back when left remains until the event starts. No rule fits: 0.
func (p Policy) RefundPercent(left time.Duration) int {
	for _, r := range p.Cancellation {
		if left >= r.UntilBefore {
			return r.RefundPercent
		}
	}
	return 0
}

// Preset is the policy of a kind before an event's own fields.
func Preset(k Kind) Policy {
	p := Policy{
		HoldTTL: 10 * time.Minute, PaymentTTL: 8 * time.Minute, ExtendTTL: 5 * time.Minute, Ceiling: 20 * time.Minute,
		MaxPlacesPerHold: 8, MaxPlacesPerCustomer: 16, MaxHoldsPerMinute: 5,
		WaitingRoom: WaitingRoom{PerSecond: 2000, MaxActive: 5000, PassTTL: 10 * time.Minute, OpensBefore: time.Hour},
		Orphans:     OrphansAvoid,
		Cancellation: []CancellationRule{
			{UntilBefore: 24 * time.Hour, RefundPercent: 100},
			{UntilBefore: 2 * time.Hour, RefundPercent: 50},
		},
	}
	switch k {
	case Concert:
		p.HoldTTL, p.PaymentTTL, p.ExtendTTL, p.Ceiling = 5*time.Minute, 4*time.Minute, 150*time.Second, 10*time.Minute
		p.MaxPlacesPerHold, p.MaxPlacesPerCustomer = 4, 8
		p.WaitingRoom.Enabled = true
	case Flight:
		p.MaxPlacesPerHold, p.MaxPlacesPerCustomer = 9, 18
	case Cinema:
	}
	return p
}
