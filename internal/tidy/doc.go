// Package tidy has no code, only tests about the repository itself: a rule that matters is a test or a linter, or it is not a rule.
//
// A rule is a function from a tree of files to findings, each with its place and its remedy. Every rule is tried twice: on this repository, where it must
// find nothing, and on a small bad tree, where it must find something.
package tidy

//go:generate go test -count=1 -run TestEveryInvariantHasItsTests . -update
