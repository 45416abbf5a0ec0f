package bookingtest

import "testing"

func Guards(t *testing.T, open func(t *testing.T) Harness) {}
