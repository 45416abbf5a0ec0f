package bookingtest

import (
	"math/rand/v2"
	"slices"

	"pgregory.net/rapid"
)

// maxSteps of a history: long enough for a hold, its payment, its end and what comes after; short enough to read.
const maxSteps = 24

// Steps are those of a seed.
func Steps(seed uint64) []Step {
	random := rand.New(rand.NewPCG(seed, 0))
	steps := make([]Step, 4+random.IntN(maxSteps-4))
	for i := range steps {
		x := random.Uint64()
		steps[i] = Step{uint8(x), uint8(x >> 8), uint8(x >> 16), uint8(x >> 24), uint8(x >> 32)}
	}
	return steps
}

// Shrink takes away steps, and makes numbers 0, as long as what is left still fails.
func Shrink(steps []Step, fails func([]Step) bool) []Step {
	for again := true; again; {
		again = false
		for i := 0; i < len(steps); {
			if fewer := slices.Delete(slices.Clone(steps), i, i+1); fails(fewer) {
				steps, again = fewer, true
			} else {
				i++
			}
		}
		for i := range steps {
			for _, part := range []func(s *Step) *uint8{
				func(s *Step) *uint8 { return &s.A }, func(s *Step) *uint8 { return &s.B }, func(s *Step) *uint8 { return &s.C }, func(s *Step) *uint8 { return &s.D },
			} {
				simpler := slices.Clone(steps)
				at := part(&simpler[i])
				if *at == 0 {
					continue
				}
				if *at = 0; fails(simpler) {
					steps, again = simpler, true
				}
			}
		}
	}
	return steps
}

// DrawSteps draws the steps of a history.
func DrawSteps(t *rapid.T) []Step {
	number := rapid.Uint8()
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Step {
		return Step{number.Draw(t, "kind"), number.Draw(t, "a"), number.Draw(t, "b"), number.Draw(t, "c"), number.Draw(t, "d")}
	}), 1, 2*maxSteps).Draw(t, "steps")
}
