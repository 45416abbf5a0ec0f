//go:build race

package booking_test

const raceEnabled = true
