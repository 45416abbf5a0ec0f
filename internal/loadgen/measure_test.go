package loadgen

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// A time is never reported shorter than it was, nor longer by more than a part of its power of two.
func TestQuantilesAreThoseOfTheSortedTimes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		times := rapid.SliceOfN(rapid.Int64Range(0, int64(60*time.Second)), 1, 200).Draw(t, "times")
		half := rapid.IntRange(0, len(times)).Draw(t, "half")
		var l, other latencies
		for i, d := range times {
			if i < half {
				l.add(time.Duration(d))
			} else {
				other.add(time.Duration(d))
			}
		}
		l.merge(&other)
		slices.Sort(times)
		for _, q := range []float64{0, 0.5, 0.9, 0.99} {
			want := times[min(len(times)-1, int(q*float64(len(times))))]
			got := int64(l.quantile(q))
			if got < want || got > want+want>>subBits+1 {
				t.Fatalf("quantile %v of %d times is %d, not %d", q, len(times), got, want)
			}
		}
		if l.quantile(1) != time.Duration(times[len(times)-1]) {
			t.Fatalf("the longest is %v, not %v", l.quantile(1), times[len(times)-1])
		}
	})
}

func TestBucketsFollowEachOtherWithoutGaps(t *testing.T) {
	t.Parallel()
	for i := range buckets - 1 {
		end := bucketEnd(i)
		if bucketOf(end) != i || bucketOf(end+1) != i+1 {
			t.Fatalf("bucket %d ends at %d, which is in %d and followed by %d", i, end, bucketOf(end), bucketOf(end+1))
		}
	}
	if got := bucketOf(math.MaxInt64); got != buckets-1 {
		t.Errorf("the longest of all times is in bucket %d", got)
	}
}

func TestCountersAreReadByNameAndLabel(t *testing.T) {
	t.Parallel()
	c := parseCounters([]byte(`# HELP holdfast_db_commits_total Write transactions committed.
# TYPE holdfast_db_commits_total counter
holdfast_db_commits_total 1.25e+03
holdfast_payment_notices_total{kind="applied"} 7
holdfast_payment_notices_total{kind="late"} 2

broken line
`))
	if got := c[metricCommits]; got != 1250 {
		t.Errorf("commits: %v", got)
	}
	if got := c[metricNotices]; got != 9 {
		t.Errorf("all notices: %v", got)
	}
	if diff := cmp.Diff(map[string]float64{"applied": 7, "late": 2}, c.labelled(metricNotices)); diff != "" {
		t.Error(diff)
	}
	if got := c.since(counters{metricCommits: 1000}, metricCommits); got != 250 {
		t.Errorf("commits since: %v", got)
	}
}

func TestASpreadHasItsMedianInTheMiddle(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		values []float64
		want   Spread
	}{
		{nil, Spread{}}, {[]float64{3}, Spread{3, 3, 3}}, {[]float64{4, 1}, Spread{1, 2.5, 4}}, {[]float64{9, 1, 2}, Spread{1, 2, 9}},
	} {
		if got := spread(x.values); got != x.want {
			t.Errorf("%v: %+v, not %+v", x.values, got, x.want)
		}
	}
}

// What the background does anyway is not counted against a request, and never makes a request cost less than nothing.
func TestTheBackgroundIsSubtracted(t *testing.T) {
	t.Parallel()
	r := &run{report: &Report{Idle: &idle{Commits: 1, Statements: 10, Seconds: 5}}}
	for _, x := range []struct {
		name               string
		commits, said      float64
		perCommit, perSaid float64
	}{{"busy", 12, 120, 0.1, 1}, {"quiet", 1, 5, 0, 0}} {
		round := Round{Server: Measure{Seconds: 2, Requests: 100}}
		r.count(&round, counters{}, counters{metricCommits: x.commits, metricStatements: x.said, metricBatches: 4, metricBatched: 100})
		d := round.Database
		if d.CommitsPerRequest != x.perCommit || d.StatementsPerRequest != x.perSaid || d.BatchMean != 25 || d.IdleStatements != 20 {
			t.Errorf("%s: %+v", x.name, d)
		}
	}
}

func TestEveryFlightIsAnotherAndEachQueryFindsADaysFlights(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 28, 15, 4, 5, 0, time.UTC)
	for _, n := range []int{FlightsFew, FlightsMany} {
		all := Flights(n, now)
		visits := map[[3]string]int{}
		for _, f := range all {
			if f.From == f.To || !f.Departs.After(now) {
				t.Fatalf("flight %+v", f)
			}
			visits[[3]string{f.From, f.To, f.Departs.Format(time.DateOnly)}]++
		}
		if len(visits) != n/flightsPerDay {
			t.Fatalf("%d flights have %d routes and days, not %d", n, len(visits), n/flightsPerDay)
		}
		for visit, flights := range visits {
			if flights != flightsPerDay {
				t.Fatalf("%v has %d flights", visit, flights)
			}
		}
	}
}

// A query that comes again while results are remembered would flatter the server.
func TestNoQueryComesAgainBeforeAllOthers(t *testing.T) {
	t.Parallel()
	all := Flights(FlightsFew, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	const round = FlightsFew / flightsPerDay * limits
	seen := make(map[string]bool, round)
	for i := range int64(round) {
		seen[search(all, i)] = true
	}
	if len(seen) != round {
		t.Errorf("%d different queries in a round of %d", len(seen), round)
	}
	if search(all, 0) != search(all, round) {
		t.Error("the next round is another one")
	}
}

func TestAnAgendaGivesWhatIsDueSoonestFirst(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000, 0)
	var a agenda
	for _, s := range []int{5, 1, 9, 3, 1} {
		a.add(now.Add(time.Duration(s)*time.Second), nil)
	}
	var got []int
	for s := range 8 {
		at := now.Add(time.Duration(s) * time.Second)
		for task, ok := a.take(at); ok; task, ok = a.take(at) {
			got = append(got, int(task.due.Sub(now)/time.Second))
		}
	}
	if diff := cmp.Diff([]int{1, 1, 3, 5}, got); diff != "" {
		t.Error(diff)
	}
	a.take(now.Add(time.Minute))
	if a.idle() {
		t.Error("idle while five tasks are being done")
	}
	for range 5 {
		a.done()
	}
	if !a.idle() {
		t.Error("not idle after all was done")
	}
}

func TestEveryHundredthOfBehaviourIsSpokenFor(t *testing.T) {
	t.Parallel()
	total := 0
	for b, share := range behaviourShare {
		total += share
		if behaviourNames[b] == "" || share <= 0 {
			t.Errorf("behaviour %d has %d percent and the name %q", b, share, behaviourNames[b])
		}
	}
	if total != 100 {
		t.Errorf("%d percent", total)
	}
}
