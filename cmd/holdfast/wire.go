package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/holdfast-project/holdfast/internal/api"
	"github.com/holdfast-project/holdfast/internal/board"
	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/httpd"
	"github.com/holdfast-project/holdfast/internal/identity"
	"github.com/holdfast-project/holdfast/internal/outbox"
	"github.com/holdfast-project/holdfast/internal/payment"
	"github.com/holdfast-project/holdfast/internal/payment/simulator"
	"github.com/holdfast-project/holdfast/internal/sqlite"
	"github.com/holdfast-project/holdfast/internal/ticket"
)

// app is the whole program, wired and listening. This file is the only place that chooses implementations; serve, demo, bench and the end-to-end
// tests all open the program through it.
type app struct {
	cfg     Config
	log     *slog.Logger
	db      *sqlite.DB
	catalog *catalog.Catalog
	booking *booking.Service
	boards  *board.Registry
	keys    *identity.Keyring
	sim     *simulator.Simulator // nil without --payments simulator
	relay   *outbox.Relay
	metrics *metrics
	server  *httpd.Server
	unlock  func() error // of the data folder
}

// open wires the program. On an error everything that was opened is closed again.
func open(ctx context.Context, cfg Config, logs io.Writer) (_ *app, err error) {
	a := &app{cfg: cfg, log: cfg.logger(logs), metrics: newMetrics()}
	var opened []func() error
	defer func() {
		if err != nil {
			for i := len(opened) - 1; i >= 0; i-- {
				err = errors.Join(err, opened[i]())
			}
		}
	}()
	now := httpd.Now

	if a.db, err = openDatabase(ctx, cfg); err != nil {
		return nil, err
	}
	opened = append(opened, a.db.Close)
	if a.unlock, err = lockData(cfg.Data); err != nil {
		return nil, err
	}
	opened = append(opened, a.unlock)
	a.metrics.database(a.db)
	if a.keys, err = identity.LoadKeyring(ctx, sqlite.NewKeys(a.db), now()); err != nil {
		return nil, fmt.Errorf("signing keys: %w", err)
	}
	admin, err := a.admin(ctx, logs)
	if err != nil {
		return nil, err
	}
	a.catalog = catalog.New(sqlite.NewCatalog(a.db), now)

	store := sqlite.NewStore(a.db)
	a.boards = board.NewRegistry(board.Config{
		Load: a.loadBoard(store), Now: now, ReloadEvery: cfg.BoardReload,
		OnError: func(event int64, err error) {
			a.log.Error("reading a board", "event", catalog.EventID(event), "error", err)
		},
	})

	var providers []payment.Provider
	switch cfg.Payments {
	case "none":
	case "simulator":
		secret, err := payment.ParseSecret(a.simulatorSecret())
		if err != nil {
			return nil, err
		}
		a.sim, err = simulator.New(simulator.Config{
			Path: filepath.Join(cfg.Data, "simulator.ledger"), Secrets: []payment.Secret{secret}, Now: now, Logger: a.log,
			Workers:     simulatorWorkers,
			CallbackURL: func() string { return a.localURL() + "/v1/payments/simulator/callback" },
			PayURL:      func(id string) string { return a.publicURL() + "/simulator/pay/" + id },
		})
		if err != nil {
			return nil, fmt.Errorf("payment simulator: %w", err)
		}
		opened = append(opened, a.sim.CloseLedger)
		providers = append(providers, a.sim)
	default:
		return nil, fmt.Errorf("%w: --payments: %q is not known; give none or simulator", errUsage, cfg.Payments)
	}

	local := outbox.NewLocal()
	issuer := &ticket.Issuer{Store: sqlite.NewTickets(a.db), Key: a.keys.TicketSigner, Now: now}
	local.Subscribe(outbox.TopicBookings, "tickets", issuer.Handle)
	a.relay = outbox.NewRelay(sqlite.NewOutbox(a.db), local, now, a.metrics.relay(a.log))

	a.booking, err = booking.New(booking.Config{
		Store: store, Catalog: a.catalog, Boards: a.boards, Providers: providers, Derive: a.keys.Derive, Now: now, Logger: a.log,
		Observer: a.metrics, Lanes: cfg.Lanes, Loops: cfg.loops(), Told: func() { a.relay.Notify() },
		ReturnURL: func(id booking.BookingID) string { return a.publicURL() + "/v1/bookings/" + id.String() },
	})
	if err != nil {
		return nil, err
	}
	opened = append(opened, func() error { a.booking.Close(); return nil })

	handler, err := a.handler(admin, now)
	if err != nil {
		return nil, err
	}
	a.server, err = httpd.Listen(ctx, httpd.Config{
		Addr: cfg.Listen, OpsAddr: cfg.OpsListen, Handler: handler, Metrics: a.metrics, Pprof: cfg.Pprof, Log: a.log,
		Checks:     []httpd.Check{{Name: "database", Check: a.checkDatabase}},
		DrainDelay: cfg.DrainDelay, StopTimeout: cfg.StopTimeout,
	})
	return a, err
}

// simulatorWorkers is how many callbacks are on their way at once: each waits for a batch of its lane, and a crowd pays thousands of times a second.
const simulatorWorkers = 256

func openDatabase(ctx context.Context, cfg Config) (*sqlite.DB, error) {
	if err := os.MkdirAll(cfg.Data, 0o700); err != nil {
		return nil, fmt.Errorf("%w: --data: %w", errUsage, err)
	}
	return sqlite.Open(ctx, cfg.Data, sqlite.Options{Now: httpd.Now, Relaxed: cfg.Synchronous == "normal"})
}

// openCatalog is for commands that only fill the catalog.
func openCatalog(ctx context.Context, cfg Config) (*catalog.Catalog, *sqlite.DB, error) {
	db, err := openDatabase(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	return catalog.New(sqlite.NewCatalog(db), httpd.Now), db, nil
}

// handler is the API behind its middleware, cheapest refusal first.
func (a *app) handler(admin identity.AdminKeyHash, now func() time.Time) (http.Handler, error) {
	config := api.Config{
		Booking: a.booking, Catalog: a.catalog, Boards: a.boards, Tickets: sqlite.NewTickets(a.db), Keys: a.keys, Admin: admin,
		Picture: sqlite.NewStore(a.db).Picture, Simulator: a.sim, Now: now, Logger: a.log, Version: version(), PublicURL: a.publicURL, Secure: func() bool { return len(a.cfg.PublicURL) > 5 && a.cfg.PublicURL[:5] == "https" },
	}
	var h http.Handler
	h, err := api.New(config)
	if err == nil && a.cfg.BenchFloor {
		h, err = a.withFloors(h, config)
	}
	if err != nil {
		return nil, err
	}
	proxies, err := a.cfg.proxies()
	if err != nil {
		return nil, err
	}
	sameOrigin, err := httpd.SameOrigin(a.cfg.TrustedOrigins)
	if err != nil {
		return nil, fmt.Errorf("%w: --trusted-origins: %w", errUsage, err)
	}
	chain := []httpd.Middleware{
		httpd.Track(httpd.Tracking{Log: a.log, Proxies: proxies, Done: a.metrics.request}),
		httpd.SecurityHeaders, sameOrigin, httpd.NewInFlight(a.cfg.MaxInFlight).Limit,
	}
	if n := a.cfg.AddressPerMinute; n > 0 {
		limit := httpd.NewLimiter[netip.Addr](httpd.Rate{Name: "address", Quota: n, Window: time.Minute}, 0)
		chain = append(chain, limit.Limit(httpd.ByAddress(false)))
	}
	return httpd.Chain(h, chain...), nil
}

// admin finds the admin key: the operator's, or one made at first start, whose hash is in the database.
func (a *app) admin(ctx context.Context, logs io.Writer) (identity.AdminKeyHash, error) {
	key, err := a.cfg.adminKey()
	if err != nil {
		return identity.AdminKeyHash{}, err
	}
	if key != "" {
		return identity.HashAdminKey(key), nil
	}
	made := identity.NewAdminKey()
	hash, fresh, err := sqlite.NewKeys(a.db).AdminKey(ctx, func() identity.AdminKeyHash { return identity.HashAdminKey(made) })
	if fresh {
		// At once, for whatever goes wrong after this the key is stored; and not through the logger: logs are kept and shipped.
		fmt.Fprintf(logs, "\nadmin key, made now and shown this once: %s\n\n", made)
	}
	return hash, err
}

// simulatorSecret follows from the root key, so that a notice from before a restart is still authentic.
func (a *app) simulatorSecret() string {
	one, two := a.keys.Derive("simulator-webhook", []byte{1}), a.keys.Derive("simulator-webhook", []byte{2})
	return "whsec_" + base64.StdEncoding.EncodeToString(append(one[:], two[:]...))
}

// loadBoard reads the picture of an event.
func (a *app) loadBoard(store *sqlite.Store) board.Loader {
	return func(ctx context.Context, id int64) (board.Shape, board.News, error) {
		e, err := a.catalog.Event(ctx, catalog.EventID(id))
		if err != nil {
			return board.Shape{}, board.News{}, err
		}
		shape, err := a.booking.Shape(ctx, e)
		if err != nil {
			return shape, board.News{}, err
		}
		news, err := store.Picture(ctx, e.ID)
		return shape, news, err
	}
}

func (a *app) checkDatabase(ctx context.Context) error {
	if err := a.db.Ping(ctx); err != nil {
		a.log.Error("database does not answer", "error", err)
		return errors.New("the database does not answer")
	}
	return nil
}

// localURL is where this process reaches itself; publicURL is where buyers reach it.
func (a *app) localURL() string {
	host, port, err := net.SplitHostPort(a.server.Addr())
	if err != nil {
		return "http://" + a.server.Addr()
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

func (a *app) publicURL() string {
	if a.cfg.PublicURL != "" {
		return a.cfg.PublicURL
	}
	return a.localURL()
}

// run serves until ctx ends, then stops in order: requests are answered first, then the loops stop, then the lanes finish what they accepted. Messages
// that are still in the outbox are relayed after the next start.
func (a *app) run(ctx context.Context) error {
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var loops sync.WaitGroup
	for _, loop := range []func(context.Context){a.boards.Run, a.booking.Run, a.relay.Run, a.runSmallLoops} {
		loops.Go(func() { loop(background) })
	}
	if a.sim != nil {
		loops.Go(func() { a.sim.Run(background) })
	}
	err := a.server.Serve(ctx)
	stop()
	loops.Wait()
	return errors.Join(err, a.close())
}

// close gives everything back that open took.
func (a *app) close() error {
	a.booking.Close()
	var err error
	if a.sim != nil {
		err = a.sim.CloseLedger()
	}
	return errors.Join(err, a.db.Close(), a.unlock())
}

// runSmallLoops keeps figures for the search and the metrics current, and learns of rotated keys.
func (a *app) runSmallLoops(ctx context.Context) {
	failed := func(loop string, err error) {
		a.metrics.LoopFailed(loop, err)
		a.log.Error("background loop", "loop", loop, "error", err)
	}
	var wg sync.WaitGroup
	for _, l := range []booking.Loop{
		{Name: "availability", Every: time.Second, Batch: 1, RunOnce: func(ctx context.Context) (int, error) {
			dirty := map[catalog.EventID]int{}
			for id, n := range a.boards.Dirty() {
				dirty[catalog.EventID(id)] = n
			}
			if len(dirty) == 0 {
				return 0, nil
			}
			return 0, a.catalog.SetAvailable(ctx, dirty)
		}},
		{Name: "lag", Every: 5 * time.Second, Batch: 1, RunOnce: func(ctx context.Context) (int, error) { return a.metrics.measure(ctx, a.booking) }},
		{Name: "keys", Every: time.Minute, Batch: 1, RunOnce: func(ctx context.Context) (int, error) { return 0, a.keys.Reload(ctx, httpd.Now()) }},
	} {
		wg.Go(func() { l.Run(ctx, failed) })
	}
	wg.Wait()
}
