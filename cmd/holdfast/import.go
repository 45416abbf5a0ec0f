package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/httpd"
	"github.com/holdfast-project/holdfast/internal/money"
	"github.com/holdfast-project/holdfast/internal/sqlite"
	"github.com/holdfast-project/holdfast/internal/venue"
)

// Limits of an import.
const (
	maxEventsBytes  = 64 << 20 // of a file of events
	maxFlights      = 100_000
	flightBatch     = 500 // flights of one transaction
	maxNamedErrors  = 20
	overbookPerMill = 15 // units that are sold beyond each 1,000 seats of a flight
	flightPool      = "ECONOMY"
	latestOpening   = 24 * time.Hour // before a flight leaves; else its sale opens now
)

// catalogOpener opens the catalog of the settings' database, for commands that only fill it.
type catalogOpener func(context.Context, Config) (*catalog.Catalog, *sqlite.DB, error)

func newImportCommand(openCatalog catalogOpener) *cobra.Command {
	c := &cobra.Command{
		Use: "import", Short: "Add layouts, events or a day of real flights from files",
		Long: "Add layouts, events or flights from files to the database in the data folder. The server may be running; it shows new events within\n" +
			"two seconds. Every file is added whole or not at all, and adding one again changes nothing.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return fmt.Errorf("%w: import what? layout, events or flights; see %q", errUsage, c.CommandPath()+" --help")
		},
	}
	c.AddCommand(newImportLayoutCommand(openCatalog), newImportEventsCommand(openCatalog), newImportFlightsCommand(openCatalog))
	return c
}

// filling is what the import commands have in common: f runs with the catalog open.
func filling(openCatalog catalogOpener, cfg *Config, f func(c *cobra.Command, args []string, events *catalog.Catalog) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) (err error) {
		events, db, err := openCatalog(c.Context(), *cfg)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		return f(c, args, events)
	}
}

func newImportLayoutCommand(openCatalog catalogOpener) *cobra.Command {
	var cfg Config
	c := &cobra.Command{
		Use: "layout FILE…", Short: "Add seat maps: own layout files or pretix seating plans", Args: cobra.MinimumNArgs(1),
		Long: "Add seat maps, told apart by content: own layout files (docs/layouts.md) or pretix seating plans. The name in the file is the layout's name:\n" +
			"another content under the same name is its next version. Prints the id for the layoutId of events.",
		RunE: filling(openCatalog, &cfg, func(c *cobra.Command, paths []string, events *catalog.Catalog) error {
			for _, path := range paths {
				data, err := readFile(path, venue.MaxBytes)
				if err != nil {
					return err
				}
				added, err := events.AddLayout(c.Context(), data)
				if wrong, ok := errors.AsType[*venue.PathError](err); ok {
					return fmt.Errorf("%w: %s: %w", errUsage, path, wrong)
				}
				if err != nil {
					return fmt.Errorf("%s: %w", path, err)
				}
				for _, w := range added.Warnings {
					fmt.Fprintf(c.ErrOrStderr(), "%s: warning: %s\n", path, w)
				}
				fmt.Fprintf(c.OutOrStdout(), "%s: layout %s version %d: %q, %d seats\n", path, added.Ref.ID, added.Ref.Version, added.Layout.Name, len(added.Layout.Seats))
			}
			return nil
		}),
	}
	loadConfig(c, &cfg)
	return c
}

func newImportEventsCommand(openCatalog catalogOpener) *cobra.Command {
	var cfg Config
	c := &cobra.Command{
		Use: "events FILE…", Short: "Add events: a JSON array, or one JSON object after the other", Args: cobra.MinimumNArgs(1),
		Long: "Add events. A file is a JSON array, or JSON objects one after the other (JSON lines), each as the body of POST /v1/admin/events;\n" +
			"docs/importing.md has examples. Events whose slug exists already are left as they are. A file with a mistake adds nothing.",
		RunE: filling(openCatalog, &cfg, func(c *cobra.Command, paths []string, events *catalog.Catalog) error {
			for _, path := range paths {
				added, taken, err := importEvents(c.Context(), events, path)
				if err != nil {
					return err
				}
				fmt.Fprintf(c.OutOrStdout(), "%s: %d events added%s\n", path, added, already(len(taken)))
				for _, slug := range taken[:min(len(taken), maxNamedErrors)] {
					fmt.Fprintf(c.ErrOrStderr(), "%s: %s exists already and was left as it is\n", path, slug)
				}
			}
			return nil
		}),
	}
	loadConfig(c, &cfg)
	return c
}

func already(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d there already", n)
}

// importEvents adds the events of a file, all or none, and gives the slugs that were taken.
func importEvents(ctx context.Context, events *catalog.Catalog, path string) (added int, taken []string, err error) {
	data, err := readFile(path, maxEventsBytes)
	if err != nil {
		return 0, nil, err
	}
	drafts, lines, err := readEvents(data)
	if err != nil {
		return 0, nil, fmt.Errorf("%w: %s:%w", errUsage, path, err)
	}
	indexes, err := events.CreateEvents(ctx, drafts)
	if fields, ok := errors.AsType[catalog.FieldErrors](err); ok {
		return 0, nil, fmt.Errorf("%w: %s", errUsage, fieldsOf(path, fields, lines))
	}
	if err != nil {
		return 0, nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, i := range indexes {
		taken = append(taken, cmp.Or(drafts[i].Slug, catalog.Slug(drafts[i].Title)))
	}
	return len(drafts) - len(taken), taken, nil
}

// fieldsOf tells what is wrong by line and element. The pointers begin with the element's index.
func fieldsOf(path string, fields catalog.FieldErrors, lines []int) string {
	var b strings.Builder
	for i, f := range fields {
		if i > 0 {
			b.WriteString("\n  ")
		}
		if i == maxNamedErrors {
			fmt.Fprintf(&b, "and %d more", len(fields)-i)
			break
		}
		index, field, _ := strings.Cut(strings.TrimPrefix(f.Pointer, "/"), "/")
		if no, err := strconv.Atoi(index); err == nil && no < len(lines) {
			fmt.Fprintf(&b, "%s:%d: event %d: /%s %s", path, lines[no], no+1, field, f.Detail)
		} else {
			fmt.Fprintf(&b, "%s: %s %s", path, f.Pointer, f.Detail)
		}
	}
	return b.String()
}

// lineError says in which line and element of a file something is wrong.
type lineError struct {
	line, element int // from 1; element 0: outside of any
	err           error
}

func (e *lineError) Error() string {
	if e.element == 0 {
		return fmt.Sprintf("%d: %v", e.line, e.err)
	}
	return fmt.Sprintf("%d: event %d: %v", e.line, e.element, e.err)
}

func (e *lineError) Unwrap() error { return e.err }

var (
	errNoEvents      = errors.New("has no events")
	errTooManyEvents = fmt.Errorf("has more than %d events; split it", catalog.MaxBatch)
	errEndsEarly     = errors.New("the file ends in the middle of it")
	errAfterList     = errors.New("something follows the list")
	errNotObject     = errors.New("an event is a JSON object")
)

// readEvents reads drafts from a JSON array or from JSON objects that follow each other, with the line on which each begins. Errors are *lineError.
func readEvents(data []byte) (drafts []catalog.Draft, lines []int, err error) {
	counted, line := 0, 1
	lineAt := func(offset int64) int {
		line += bytes.Count(data[counted:offset], []byte("\n"))
		counted = int(offset)
		return line
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	d := json.NewDecoder(bytes.NewReader(data))
	fail := func(offset int64, err error) ([]catalog.Draft, []int, error) {
		if s, ok := errors.AsType[*json.SyntaxError](err); ok {
			offset = s.Offset
		}
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			offset, err = int64(len(data)), errEndsEarly
		}
		return nil, nil, &lineError{line: lineAt(max(offset, int64(counted))), element: len(drafts) + 1, err: err}
	}
	list := startsList(data)
	if list {
		if _, err := d.Token(); err != nil {
			return fail(0, err)
		}
	}
	for !list || d.More() {
		var raw json.RawMessage
		switch err := d.Decode(&raw); {
		case errors.Is(err, io.EOF) && !list:
			return atLeastOne(drafts, lines)
		case err != nil:
			return fail(d.InputOffset(), err)
		}
		begin := d.InputOffset() - int64(len(raw))
		if len(drafts) == catalog.MaxBatch {
			return nil, nil, &lineError{line: lineAt(begin), err: errTooManyEvents}
		}
		draft, err := draftOf(raw)
		if err != nil {
			return nil, nil, &lineError{line: lineAt(begin), element: len(drafts) + 1, err: err}
		}
		drafts, lines = append(drafts, draft), append(lines, lineAt(begin))
	}
	if _, err := d.Token(); err != nil {
		return fail(d.InputOffset(), err)
	}
	if rest := bytes.TrimSpace(data[d.InputOffset():]); len(rest) > 0 {
		return nil, nil, &lineError{line: lineAt(int64(len(data) - len(rest))), err: errAfterList}
	}
	return atLeastOne(drafts, lines)
}

func atLeastOne(drafts []catalog.Draft, lines []int) ([]catalog.Draft, []int, error) {
	if len(drafts) == 0 {
		return nil, nil, &lineError{line: 1, err: errNoEvents}
	}
	return drafts, lines, nil
}

func startsList(data []byte) bool {
	data = bytes.TrimLeft(data, " \t\r\n")
	return len(data) > 0 && data[0] == '['
}

// draftOf reads one event; what is unknown in it is an error, because it is likely a field with its name misspelt.
func draftOf(raw json.RawMessage) (d catalog.Draft, err error) {
	if len(raw) == 0 || raw[0] != '{' {
		return d, errNotObject
	}
	if err = strictly(raw, &d); err == nil {
		return d, nil
	}
	// The decoder does not always say which field it was: reading them one by one tells.
	var fields map[string]json.RawMessage
	if e := json.Unmarshal(raw, &fields); e != nil {
		return d, e
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		one, e := json.Marshal(map[string]json.RawMessage{name: fields[name]})
		if e != nil {
			return d, e
		}
		var alone catalog.Draft
		if e := strictly(one, &alone); e != nil {
			if wrong, ok := errors.AsType[*json.UnmarshalTypeError](e); ok && wrong.Field != "" {
				name, e = strings.ReplaceAll(wrong.Field, ".", "/"), fmt.Errorf("a JSON %s does not fit here", wrong.Value)
			}
			return d, fmt.Errorf("/%s: %s", name, strings.TrimPrefix(e.Error(), "json: "))
		}
	}
	return d, err
}

func strictly(raw []byte, d *catalog.Draft) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	return dec.Decode(d)
}

// readFile reads a file that may have so many bytes.
func readFile(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	defer f.Close() // only read
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("%w: %s: more than %d MiB", errUsage, path, most>>20)
	}
	return data, nil
}

// flightOptions are the flags of import flights.
type flightOptions struct {
	files    flightFiles
	date     string
	count    int
	currency string
}

func newImportFlightsCommand(openCatalog catalogOpener) *cobra.Command {
	var cfg Config
	o := flightOptions{}
	c := &cobra.Command{
		Use: "flights FILE…", Short: "Add a day of flights on real routes (OpenFlights)",
		Long: "Add a day of flights on the routes of OpenFlights: FILEs are its airports.dat, routes.dat and planes.dat, told by their names or given by flag.\n" +
			"Without planes.dat every aircraft has the same cabin.\n\n" +
			"Which flights: routes without stops that are no codeshares, between airports that have an IATA code and a known time zone, each airline and\n" +
			"route once, in the order of a hash; the same files give the same flights, and a larger --count only adds to them.\n" +
			"Flight numbers, departure times (local, 05:00 to 22:55), fares and cabins are invented, from a hash too.\n\n" + openFlightsNotice,
		Args:    cobra.ArbitraryArgs, // the flags can name all three files
		Example: "  holdfast import flights airports.dat routes.dat planes.dat --date 2026-12-24 --count 5000",
	}
	c.RunE = filling(openCatalog, &cfg, func(c *cobra.Command, _ []string, events *catalog.Catalog) error {
		return importFlights(c, events, &o)
	})
	f := c.Flags()
	f.StringVar(&o.files.Airports, "airports", "", "file of airports, whatever its name")
	f.StringVar(&o.files.Routes, "routes", "", "file of routes")
	f.StringVar(&o.files.Planes, "planes", "", "file of aircraft")
	f.StringVar(&o.date, "date", "", "day of departure where the flight leaves, such as 2026-12-24 (required)")
	f.IntVar(&o.count, "count", 5_000, "number of flights")
	f.StringVar(&o.currency, "currency", "EUR", "ISO 4217 code of the fares")
	loadConfig(c, &cfg)
	settings := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) error { // before anything is opened
		if err := settings(c, args); err != nil {
			return err
		}
		return o.check(args)
	}
	return c
}

func (o *flightOptions) check(paths []string) error {
	if err := o.files.recognise(paths); err != nil {
		return err
	}
	if _, err := time.Parse(time.DateOnly, o.date); err != nil {
		return fmt.Errorf("%w: --date: give a day such as 2026-12-24", errUsage)
	}
	if o.count < 1 || o.count > maxFlights {
		return fmt.Errorf("%w: --count: give 1 to %d", errUsage, maxFlights)
	}
	if _, err := money.New(0, o.currency); err != nil {
		return fmt.Errorf("%w: --currency: %w", errUsage, err)
	}
	return nil
}

// importFlights reads the network and adds its first flights, a batch in a transaction.
func importFlights(c *cobra.Command, events *catalog.Catalog, o *flightOptions) error {
	ctx, out, progress := c.Context(), c.OutOrStdout(), c.ErrOrStderr()
	n, err := readNetwork(o.files)
	if err != nil {
		return err
	}
	if n.Bad.Count > 0 {
		fmt.Fprintf(progress, "%d lines could not be read and are left out; the first:\n", n.Bad.Count)
		for _, named := range n.Bad.Named {
			fmt.Fprintf(progress, "  %s\n", named)
		}
	}
	day, err := time.Parse(time.DateOnly, o.date)
	if err != nil {
		return err
	}
	cabins, err := addCabins(ctx, events)
	if err != nil {
		return err
	}
	now := httpd.Now()
	bar := newProgress(progress, "flights", min(o.count, len(n.Legs)))
	added, taken, used := 0, 0, 0
	for used < len(n.Legs) && added+taken < o.count {
		var drafts []catalog.Draft
		for used < len(n.Legs) && len(drafts) < min(flightBatch, o.count-added-taken) {
			l := &n.Legs[used]
			used++
			if at, ok := l.departure(day); ok {
				drafts = append(drafts, l.draft(at, now, o.currency, cabins[l.Cabin]))
			}
		}
		there, err := events.CreateEvents(ctx, drafts)
		if err != nil {
			bar.stop()
			return fmt.Errorf("after %d flights: %w", added, err)
		}
		taken += len(there)
		added += len(drafts) - len(there)
		bar.set(added + taken)
	}
	bar.stop()
	fmt.Fprintf(out, "%d flights on %s added%s", added, o.date, already(taken))
	if added+taken < o.count {
		fmt.Fprintf(out, "; these are all that the files have")
	}
	fmt.Fprintf(out, "\n%d routes read: %d without a stop between known airports; left out %d codeshares, %d with stops, %d of other airports, %d repeated\n%s\n",
		n.Routes, len(n.Legs), n.Codeshares, n.Stops, n.Unknown, n.Repeated, openFlightsNotice)
	return nil
}

// seating is a cabin that was added.
type seating struct {
	ref   catalog.LayoutRef
	seats int
}

// addCabins stores the cabins; all flights share them.
func addCabins(ctx context.Context, events *catalog.Catalog) ([len(cabinShapes)]seating, error) {
	var all [len(cabinShapes)]seating
	for kind, shape := range cabinShapes {
		l, err := venue.Cabin(shape.Rows, shape.Letters, flightPool)
		if err != nil {
			return all, err
		}
		added, err := events.AddLayout(ctx, l.Canonical())
		if err != nil {
			return all, err
		}
		all[kind] = seating{ref: added.Ref, seats: len(l.Seats)}
	}
	return all, nil
}

// draft is the flight of a leg that leaves at a time. One that has left already is an event like others, whose sale is over.
func (l *leg) draft(at, now time.Time, currency string, cabin seating) catalog.Draft {
	fare := l.fare(money.Money{Currency: currency}.Digits())
	one := 1
	opens := now
	if latest := at.Add(-latestOpening); latest.Before(now) {
		opens = latest
	}
	return catalog.Draft{
		Kind: catalog.Flight, Slug: l.slug(at), Title: l.title(), StartsAt: at, SaleOpensAt: opens, Currency: currency,
		Venue:    catalog.Venue{Name: l.From.Name, City: l.From.City, Country: l.From.Country, TimeZone: l.From.Zone},
		LayoutID: cabin.ref.ID, LayoutVersion: cabin.ref.Version, Origin: l.From.Code, Destination: l.To.Code,
		Pools: []catalog.PoolDraft{{
			Pool: flightPool, Capacity: int64(cabin.seats), Overbook: overbook(cabin.seats), Buckets: &one, Price: &fare,
		}},
	}
}

// overbook is 1.5 % of the seats, rounded: 3 for 180.
func overbook(seats int) int64 { return int64(seats*overbookPerMill+500) / 1000 }

// progress shows how far an import is: a bar on a terminal, else a line now and then.
type progress struct {
	w     io.Writer
	what  string
	total int
	said  int
	bars  *mpb.Progress
	bar   *mpb.Bar
}

func newProgress(w io.Writer, what string, total int) *progress {
	p := &progress{w: w, what: what, total: total}
	if isTerminal(w) {
		p.bars = mpb.New(mpb.WithOutput(w), mpb.WithWidth(60))
		p.bar = p.bars.AddBar(int64(total),
			mpb.PrependDecorators(decor.Name(what+" "), decor.CountersNoUnit("%d of %d ")), mpb.AppendDecorators(decor.Percentage(), decor.Name(" "), decor.AverageETA(decor.ET_STYLE_GO)))
	}
	return p
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	s, err := f.Stat()
	return err == nil && s.Mode()&fs.ModeCharDevice != 0
}

// set tells how many are done. Plain lines come at every tenth.
func (p *progress) set(done int) {
	if p.bar != nil {
		p.bar.SetCurrent(int64(done))
		return
	}
	if tenth := done * 10 / max(p.total, 1); tenth > p.said {
		p.said = tenth
		fmt.Fprintf(p.w, "%s: %d of %d\n", p.what, done, p.total)
	}
}

// stop ends the bar as it stands.
func (p *progress) stop() {
	if p.bar != nil {
		p.bar.Abort(false) // without an effect on a bar that is full
		p.bars.Wait()
	}
}
