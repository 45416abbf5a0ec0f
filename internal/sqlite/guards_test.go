package sqlite

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/booking/bookingtest"
)

// mutant is one guard taken away, or one that refuses everything.
type mutant struct {
	name           string
	query, instead string   // of a statement
	schema         []string // statements that change the schema
}

// TestGuardsHaveTeeth takes every condition of every writing statement, every CHECK and every unique key away, one at a time: each time a lie must get through
// to the test, or the truth must be refused. A guard that can go without a red test is not tried, or not needed.
func TestGuardsHaveTeeth(t *testing.T) {
	t.Parallel()
	if os.Getenv("HOLDFAST_TEST_GUARDS") == "" {
		t.Skip("takes each guard away in turn and runs all lies, half a minute's work: make guards")
	}
	cases := bookingtest.GuardCases()
	mutants := mutantsOf(t, cases)
	t.Logf("%d mutants, %d lies", len(mutants), len(cases))
	if len(mutants) < 100 {
		t.Errorf("only %d mutants: the statements or the schema are no longer found", len(mutants))
	}
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			if schemaLies(mutated(t, m).Store.(*Store).DB) != nil {
				return
			}
			for _, c := range ordered(cases, m) {
				if c.Try(t.Context(), t, mutated(t, m)) != nil {
					return
				}
			}
			t.Errorf("no test notices:\n%s\n%s", m.instead, strings.Join(m.schema, "\n"))
		})
	}
}

// ordered puts the lies first that are about the table of a mutant: most die at once.
func ordered(cases []bookingtest.GuardCase, m mutant) []bookingtest.GuardCase {
	table := regexp.MustCompile(`(?:UPDATE|INTO|CREATE TABLE|ON) (\w+)`).FindStringSubmatch(m.instead + strings.Join(m.schema, " "))
	about := map[string]string{
		"pool_bucket": "pool", "payment_notice": "notice", "outbox": "message", "ticket": "tickets",
	}
	word := ""
	if table != nil {
		if word = about[table[1]]; word == "" {
			word = table[1]
		}
	}
	out := slices.Clone(cases)
	slices.SortStableFunc(out, func(a, b bookingtest.GuardCase) int {
		return order(!strings.HasPrefix(a.Name, word+":")) - order(!strings.HasPrefix(b.Name, word+":"))
	})
	return out
}

func order(last bool) int {
	if last {
		return 1
	}
	return 0
}

// mutated opens a fresh database with a guard taken away.
func mutated(t *testing.T, m mutant) bookingtest.Harness {
	t.Helper()
	h := quick(t)
	db := h.Store.(*Store).DB
	w := <-db.writer
	defer func() { db.writer <- w }()
	for _, s := range m.schema {
		if _, err := w.conn.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	if m.query != "" {
		// Statements are prepared once under their text: this one is found instead of it.
		s, err := w.conn.PrepareContext(t.Context(), m.instead)
		if err != nil {
			t.Fatalf("%s: %v", m.instead, err)
		}
		w.prepared[m.query] = s
	}
	return h
}

// quick is a harness that does not wait for the disk.
func quick(t *testing.T) bookingtest.Harness {
	t.Helper()
	clock := bookingtest.NewClock()
	return harnessOn(openIn(t, t.TempDir(), Options{Now: clock.Now, Relaxed: true}), clock)
}

// mutantsOf reads the statements that the cases send, and the schema that they meet.
func mutantsOf(t *testing.T, cases []bookingtest.GuardCase) (all []mutant) {
	t.Helper()
	queries := map[string]bool{}
	schema := map[string]string{}
	for i, c := range cases {
		h := quick(t)
		if err := c.Try(t.Context(), t, h); err != nil {
			t.Fatalf("%s, with every guard in place: %v", c.Name, err)
		}
		db := h.Store.(*Store).DB
		w := <-db.writer
		for q := range w.prepared {
			if regexp.MustCompile(`^\s*(INSERT|UPDATE|DELETE)`).MatchString(q) {
				queries[q] = true
			}
		}
		db.writer <- w
		if i == 0 {
			rows, err := db.read.QueryContext(t.Context(), `
				SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND tbl_name IN ('seat', 'pool_bucket', 'hold', 'allowance', 'booking', 'payment',
					'payment_notice', 'refund', 'quote', 'outbox', 'ticket', 'signing_key', 'admin_key')`)
			if err != nil {
				t.Fatal(err)
			}
			for rows.Next() {
				var name, text string
				if err := rows.Scan(&name, &text); err != nil {
					t.Fatal(err)
				}
				schema[name] = text
			}
			if err := closing(rows, rows.Err()); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, q := range slices.Sorted(maps.Keys(queries)) {
		all = append(all, statementMutants(q)...)
	}
	for _, name := range slices.Sorted(maps.Keys(schema)) {
		all = append(all, schemaMutants(name, schema[name])...)
	}
	return all
}

// statementMutants makes each condition of a statement always true, and always false.
func statementMutants(q string) (all []mutant) {
	for _, at := range conditions(q) {
		text := q[at[0]:at[1]]
		for _, how := range []string{"OR 1", "AND 0"} {
			if text == "?3 > 0" && how == "OR 1" {
				continue // always true: it only gives the statement the parameters that its siblings have
			}
			if text == "seat.status = 1" && how == "OR 1" && strings.Contains(q, "seat.expires_at") {
				continue // only a held seat has an expires_at, by a CHECK
			}
			if text == "status <> 2" && how == "OR 1" {
				continue // to make void what is void changes nothing
			}
			all = append(all, mutant{
				name:  fmt.Sprintf("%s: %s %s", head(q), text, how),
				query: q, instead: q[:at[0]] + "(" + text + " " + how + ")" + q[at[1]:],
			})
		}
	}
	return all
}

func head(q string) string {
	words := strings.Fields(q)
	return strings.Join(words[:min(3, len(words))], " ")
}

// conditions finds the parts of every WHERE of a statement that AND and OR join.
func conditions(q string) (all [][2]int) {
	word := regexp.MustCompile(`\bWHERE\b`)
	for _, w := range word.FindAllStringIndex(q, -1) {
		depth, begin := 0, w[1]
		add := func(end int) {
			text := q[begin:end]
			left := len(text) - len(strings.TrimLeft(text, " \t\n"))
			text = strings.TrimSpace(text)
			if text != "" {
				all = append(all, [2]int{begin + left, begin + left + len(text)})
			}
		}
		i := w[1]
		for ; i < len(q) && depth >= 0; i++ {
			rest := q[i:]
			switch {
			case q[i] == '(':
				depth++
			case q[i] == ')':
				depth--
			case depth > 0 || !strings.ContainsRune(" \t\n", rune(q[i])):
			default:
				join := regexp.MustCompile(`^\s(AND|OR)\s`).FindString(rest)
				if join != "" {
					add(i)
					begin = i + len(join)
					i += len(join) - 2
				} else if regexp.MustCompile(`^\s+(ON CONFLICT|ORDER BY|RETURNING|LIMIT)\b`).MatchString(rest) {
					depth = -1
					i--
				}
			}
		}
		if depth < 0 && q[i-1] == ')' {
			i--
		}
		add(i)
	}
	return all
}

// schemaMutants takes each CHECK, the uniqueness of each index and each primary key away.
func schemaMutants(name, text string) (all []mutant) {
	replace := func(what, by string) {
		all = append(all, mutant{name: fmt.Sprintf("%s: without %s", name, what), schema: []string{
			`PRAGMA writable_schema = ON`,
			fmt.Sprintf(`UPDATE sqlite_schema SET sql = '%s' WHERE name = '%s'`, strings.ReplaceAll(by, "'", "''"), name),
			`PRAGMA writable_schema = RESET`,
		}})
	}
	for at := 0; ; {
		i := strings.Index(text[at:], "CHECK (")
		if i < 0 {
			break
		}
		begin := at + i
		end, depth := begin+len("CHECK "), 0
		for ; ; end++ {
			if text[end] == '(' {
				depth++
			} else if text[end] == ')' {
				if depth--; depth == 0 {
					break
				}
			}
		}
		replace(text[begin:end+1], text[:begin]+"CHECK (1)"+text[end+1:])
		at = end
	}
	if strings.HasPrefix(text, "CREATE UNIQUE INDEX") {
		all = append(all, mutant{name: name + ": not unique", schema: []string{"DROP INDEX " + name, strings.Replace(text, "UNIQUE ", "", 1)}})
	}
	if key := regexp.MustCompile(`PRIMARY KEY \([^)]*\)`).FindString(text); key != "" && !strings.HasPrefix(text, "CREATE UNIQUE") {
		// The rows of such a table are kept in the key, so the table is made anew; it is still empty.
		by := strings.Replace(strings.Replace(text, key, "CHECK (1)", 1), "WITHOUT ROWID", "", 1)
		all = append(all, mutant{name: name + ": without " + key, schema: []string{"DROP TABLE " + name, by}})
	}
	return all
}

// TestSchemaRefuses tries the constraints that no decider can reach, because the store itself keeps to them.
func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	if err := schemaLies(harness(t).Store.(*Store).DB); err != nil {
		t.Error(err)
	}
}

// schemaLies writes what a table must refuse, and beside it what only differs from it by being allowed.
func schemaLies(db *DB) error {
	for _, test := range []struct{ what, lie, truth string }{
		{"a held seat without a hold", `INSERT INTO seat VALUES (1, 1, 1, NULL, 5, 1)`, `INSERT INTO seat VALUES (1, 1, 1, x'01', 5, 1)`},
		{"a free seat with a hold", `INSERT INTO seat VALUES (1, 2, 0, x'01', NULL, 1)`, `INSERT INTO seat VALUES (1, 2, 0, NULL, NULL, 1)`},
		{"a held seat without an end", `INSERT INTO seat VALUES (1, 3, 1, x'01', NULL, 1)`, `INSERT INTO seat VALUES (1, 3, 1, x'01', 5, 1)`},
		{"a sold seat with an end", `INSERT INTO seat VALUES (1, 4, 2, x'01', 5, 1)`, `INSERT INTO seat VALUES (1, 4, 2, x'01', NULL, 1)`},
		{"a bucket twice", `INSERT INTO pool_bucket (event_id, pool, bucket, capacity, overbook) SELECT 1, 1, value, 1, 0 FROM json_each('[1,1]')`,
			`INSERT INTO pool_bucket (event_id, pool, bucket, capacity, overbook) SELECT 1, 1, value, 1, 0 FROM json_each('[1,2]')`},
		{"a second admin key", `INSERT INTO admin_key VALUES (2, x'01')`, `INSERT INTO admin_key VALUES (1, x'01')`},
		{"a ticket with a status that there is not", `INSERT INTO ticket VALUES (1, x'01', x'01', 0, '', '', '', '', 3, 0)`,
			`INSERT INTO ticket VALUES (1, x'01', x'01', 0, '', '', '', '', 2, 0)`},
		{"the same key twice", `INSERT INTO signing_key SELECT 'token', value, x'01', 0, NULL FROM json_each('[1,1]')`,
			`INSERT INTO signing_key SELECT 'token', value, x'01', 0, NULL FROM json_each('[1,2]')`},
	} {
		write := func(query string) error {
			return db.update(context.Background(), func(tx *tx) error {
				_, err := tx.exec(query)
				return err
			})
		}
		if err := write(test.lie); !isConstraint(err) {
			return fmt.Errorf("%s: %w", test.what, err)
		}
		if err := write(test.truth); err != nil {
			return fmt.Errorf("not %s: %w", test.what, err)
		}
	}
	return nil
}

// TestRefusedBatchIsErrGuard: what is not a guard's refusal must not look like one, or the lane would try again what can't succeed.
func TestRefusedBatchIsErrGuard(t *testing.T) {
	t.Parallel()
	h := harness(t)
	broken := errors.New("broken")
	db := h.Store.(*Store).DB
	err := db.update(t.Context(), func(t *tx) error {
		_, err := t.exec(`INSERT INTO pool_bucket (event_id, pool, bucket, capacity, overbook) VALUES (1, 0, 0, 1, 0)`)
		return errors.Join(err, broken)
	})
	if !errors.Is(err, broken) || errors.Is(err, booking.ErrGuard) {
		t.Error(err)
	}
	if b, err := h.Store.Books(t.Context(), 1); err != nil || len(b.Pools) != 0 {
		t.Errorf("rolled back, yet there: %v, %v", b.Pools, err) // C-46
	}
}
