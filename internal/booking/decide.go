package booking

import (
	"github.com/holdfast-project/holdfast/internal/catalog"
)

// Command is something that changes the places or the money of an event. The set is closed: every rule is in this package.
type Command interface {
	// EventID is the event whose lane the command goes through.
	EventID() catalog.EventID
	// need names the rows that the command touches.
	need(n *Need)
	// decide answers the command from the sheet and changes it. It checks everything before the first change: a refused command leaves no trace.
	decide(s *sheet) Result
}

// Result answers one command. With an Err the other fields may still tell what there is (a replayed hold, a quote that is over).
type Result struct {
	Err     error
	Replay  bool // the command had been done before: the answer is the first one's
	Hold    Hold
	Booking Booking
	Payment Payment
	Quote   Quote
	Late    bool // money was taken and goes back
	// Short: the command was refused for want of units or allowance, which holds whose time is over may still be using. The lane ends those and tries again.
	Short bool
	pools []int // the pools that are short
}

// Decider is the type of Decide; stores take one so that the contract suite can try them with a lying one.
type Decider func(*Rows, []Command) (*Changes, []Result)

// NeedOf names the rows that commands touch, each once.
func NeedOf(commands []Command) Need {
	var n Need
	for _, c := range commands {
		c.need(&n)
	}
	n.compact()
	return n
}

// Decide answers commands, first come, first served, from the rows that a store has locked. It is a pure function of its arguments:
// no I/O, no clock, no randomness, so that repeating a batch whose outcome is unknown gives the same changes.
// It takes rows over: they are the working copy afterwards.
func Decide(rows *Rows, commands []Command) (*Changes, []Result) {
	s := newSheet(rows)
	results := make([]Result, len(commands))
	for i, c := range commands {
		results[i] = c.decide(s)
	}
	return s.changes(), results
}
