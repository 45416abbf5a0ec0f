package sqlite

import "strings"

// chunkSizes are the numbers of rows or keys that one statement takes. Many rows in one statement were measured at half the cost of a statement for each,
// and of passing them as JSON. A few fixed sizes keep the statements few, so that all of them stay prepared.
var chunkSizes = [...]int{32, 8, 1}

// chunked is a statement over a list of rows, in a text for each size.
type chunked [len(chunkSizes)]string

// overRows writes head, then row once for each row of the list, then tail.
func overRows(head, row, tail string) (c chunked) {
	for i, n := range chunkSizes {
		c[i] = head + strings.TrimSuffix(strings.Repeat(row+", ", n), ", ") + tail
	}
	return c
}

// each cuts n rows into chunks and calls f with the statement for rows from to to.
func (c *chunked) each(n int, f func(query string, from, to int) error) error {
	for from := 0; from < n; {
		i := 0
		for chunkSizes[i] > n-from {
			i++
		}
		to := from + chunkSizes[i]
		if err := f(c[i], from, to); err != nil {
			return err
		}
		from = to
	}
	return nil
}
