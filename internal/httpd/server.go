package httpd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Limits of a server.
const (
	ReadHeaderTimeout = 5 * time.Second
	ReadTimeout       = 15 * time.Second // headers and body; streams lift it
	WriteTimeout      = 30 * time.Second // from the end of the headers to the end of the answer; streams lift it
	IdleTimeout       = 75 * time.Second // longer than the 60 s of common proxies, which should be the ones to hang up
	MaxHeaderBytes    = 16 << 10
	MaxConnections    = 50_000 // unless configured; one more is closed at once
	maxScrapes        = 4
)

// ErrStopForced says that requests were cut because they had not ended within the time for stopping.
var ErrStopForced = errors.New("stopped with requests unfinished")

// Config says what a server serves, where, and how it stops.
type Config struct {
	Addr    string // host:port; port 0 takes a free one
	OpsAddr string // where health, metrics and profiles answer; empty: on Addr, without profiles
	Handler http.Handler
	Metrics prometheus.Gatherer // nil: no /metrics
	Checks  []Check             // of /readyz
	TLS     *tls.Config         // nil: plain
	Pprof   bool                // serve profiles on OpsAddr
	Log     *slog.Logger

	MaxConnections int // of the main listener; 0: MaxConnections

	// DrainDelay is the time between /readyz failing and the listener closing, for load balancers to notice. StopTimeout bounds
	// the wait for requests after that.
	DrainDelay  time.Duration
	StopTimeout time.Duration
}

// Server listens from Listen on and answers during Serve.
type Server struct {
	cfg         Config
	main, ops   *http.Server // ops is nil when it shares the listener
	mainL, opsL net.Listener
	draining    atomic.Bool
	connections atomic.Int64
	streams     chan struct{} // closed when streams should end
}

// Listen opens the listeners. Whoever does not call Serve must call Close.
func Listen(ctx context.Context, cfg Config) (*Server, error) {
	if cfg.MaxConnections < 1 {
		cfg.MaxConnections = MaxConnections
	}
	s := &Server{cfg: cfg, streams: make(chan struct{})}
	var listen net.ListenConfig
	var err error
	if s.mainL, err = listen.Listen(ctx, "tcp", cfg.Addr); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	ops := s.opsMux()
	handler := s.sharing(ops)
	if cfg.OpsAddr != "" {
		if s.opsL, err = listen.Listen(ctx, "tcp", cfg.OpsAddr); err != nil {
			return nil, errors.Join(fmt.Errorf("listen for operators: %w", err), s.mainL.Close())
		}
		s.ops = s.newServer(ops)
		// A profile takes 30 s and more of writing nothing.
		s.ops.WriteTimeout = 0
		handler = s.closing(cfg.Handler)
	}
	s.main = s.newServer(handler)
	s.main.TLSConfig = cfg.TLS
	s.main.BaseContext = func(net.Listener) context.Context {
		return context.WithValue(context.Background(), drainKey{}, s.streams)
	}
	s.main.ConnState = s.countConnections
	s.main.RegisterOnShutdown(func() { close(s.streams) }) // after the listener was closed: who reconnects comes to another server
	return s, nil
}

func (s *Server) newServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: ReadHeaderTimeout,
		ReadTimeout:       ReadTimeout,
		WriteTimeout:      WriteTimeout,
		IdleTimeout:       IdleTimeout,
		MaxHeaderBytes:    MaxHeaderBytes,
		// What net/http logs (broken handshakes, clients that vanish) is the internet's noise.
		ErrorLog: slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug),
	}
}

// Addr is the real address, with the port that was taken.
func (s *Server) Addr() string { return s.mainL.Addr().String() }

// OpsAddr is the real address for operators, which may be Addr.
func (s *Server) OpsAddr() string {
	if s.opsL == nil {
		return s.Addr()
	}
	return s.opsL.Addr().String()
}

// Connections is the number of open connections of the main listener.
func (s *Server) Connections() int64 { return s.connections.Load() }

// Close gives the listeners back without having served.
func (s *Server) Close() error {
	err := s.mainL.Close()
	if s.opsL != nil {
		err = errors.Join(err, s.opsL.Close())
	}
	return err
}

// Serve answers until ctx is done or a listener breaks, then stops in order: /readyz fails, DrainDelay passes, the listener
// closes, streams are told to end, and every request that was accepted is answered, for up to StopTimeout; what is left then is
// cut, and the error is ErrStopForced. The operators' listener closes last.
func (s *Server) Serve(ctx context.Context) error {
	broken := make(chan error, 2)
	go func() { broken <- s.serveMain() }()
	running := 1
	if s.ops != nil {
		running++
		go func() { broken <- s.ops.Serve(s.opsL) }()
	}

	var err error
	select {
	case err = <-broken:
		running--
		s.draining.Store(true)
	case <-ctx.Done():
		s.draining.Store(true)
		s.cfg.Log.Info("stopping", "drainDelay", s.cfg.DrainDelay)
		delay := time.NewTimer(s.cfg.DrainDelay)
		defer delay.Stop()
		select {
		case err = <-broken:
			running--
		case <-delay.C:
		}
	}

	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.StopTimeout)
	defer cancel()
	if stopErr := s.main.Shutdown(stopping); stopErr != nil {
		err = errors.Join(err, ErrStopForced, s.main.Close())
	}
	if s.ops != nil {
		// Operators' requests are reads that can be repeated; a profile would hold the process up.
		err = errors.Join(err, s.ops.Close())
	}
	for range running {
		if e := <-broken; !errors.Is(e, http.ErrServerClosed) {
			err = errors.Join(err, e)
		}
	}
	return err
}

func (s *Server) serveMain() error {
	if s.cfg.TLS != nil {
		return s.main.ServeTLS(s.mainL, "", "") // the certificates are in the configuration
	}
	return s.main.Serve(s.mainL)
}

func (s *Server) countConnections(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if s.connections.Add(1) > int64(s.cfg.MaxConnections) {
			_ = c.Close() // it was never used
		}
	case http.StateClosed, http.StateHijacked:
		s.connections.Add(-1)
	case http.StateActive, http.StateIdle:
	}
}

func (s *Server) opsMux() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", alive)
	mux.HandleFunc("GET /healthz", alive)
	mux.Handle("GET /readyz", &readiness{checks: s.cfg.Checks, draining: s.draining.Load})
	if s.cfg.Metrics != nil {
		mux.Handle("GET /metrics", promhttp.HandlerFor(s.cfg.Metrics, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes}))
	}
	if s.cfg.Pprof && s.cfg.OpsAddr != "" {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return mux
}

// sharing puts the operators' addresses in front of the handler, outside of its limits and logs: a full server must still say
// that it is alive.
func (s *Server) sharing(ops http.Handler) http.Handler {
	handler := s.closing(s.cfg.Handler)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/livez", "/healthz", "/readyz", "/metrics":
			ops.ServeHTTP(w, r)
		default:
			handler.ServeHTTP(w, r)
		}
	})
}

// closing ends kept-alive connections with the next answer while the server drains. Closing them idle at the end can hit a
// request that is just arriving.
func (s *Server) closing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.draining.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}
