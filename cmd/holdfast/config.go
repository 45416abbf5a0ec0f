package main

import (
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"
	"github.com/spf13/cobra"

	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/httpd"
)

// Config is every setting of a server. Each has a default with which the program runs.
type Config struct {
	Listen    string `env:"LISTEN" envDefault:"127.0.0.1:8080"`
	OpsListen string `env:"OPS_LISTEN"`
	Data      string `env:"DATA" envDefault:"./data"`
	PublicURL string `env:"PUBLIC_URL"`
	Payments  string `env:"PAYMENTS" envDefault:"none"`

	AdminKey     string `env:"ADMIN_KEY"`
	AdminKeyFile string `env:"ADMIN_KEY_FILE"`

	LogFormat string `env:"LOG_FORMAT" envDefault:"text"`
	LogLevel  string `env:"LOG_LEVEL" envDefault:"info"`
	Pprof     bool   `env:"PPROF"`

	TrustedProxies []string `env:"TRUSTED_PROXIES"`
	TrustedOrigins []string `env:"TRUSTED_ORIGINS"`

	Synchronous      string        `env:"SQLITE_SYNCHRONOUS" envDefault:"full"`
	Lanes            int           `env:"LANES" envDefault:"2"`
	MaxInFlight      int           `env:"MAX_IN_FLIGHT" envDefault:"4096"`
	AddressPerMinute int           `env:"ADDRESS_PER_MINUTE" envDefault:"1200"`
	DrainDelay       time.Duration `env:"DRAIN_DELAY" envDefault:"0s"`
	StopTimeout      time.Duration `env:"STOP_TIMEOUT" envDefault:"20s"`
	SweepEvery       time.Duration `env:"SWEEP_EVERY" envDefault:"15s"`
	ReconcileAfter   time.Duration `env:"RECONCILE_AFTER" envDefault:"15m"`
	ReconcileEnd     time.Duration `env:"RECONCILE_BEFORE_END" envDefault:"30s"`
	BoardReload      time.Duration `env:"BOARD_RELOAD" envDefault:"5s"`

	// For bench and tests, without variables.
	BenchFloor bool   `env:"-"`
	ReadyFile  string `env:"-"`
}

// loadConfig takes the settings from the environment and registers a flag for each, which wins.
func loadConfig(c *cobra.Command, cfg *Config) {
	// An unreadable variable is reported when the command runs, with all others that are wrong.
	err := env.ParseWithOptions(cfg, env.Options{Prefix: "HOLDFAST_"})
	f := c.Flags()
	f.StringVar(&cfg.Listen, "listen", cfg.Listen, "address to serve on; port 0 takes a free one")
	f.StringVar(&cfg.OpsListen, "ops-listen", cfg.OpsListen, "separate address for /healthz, /readyz, /metrics and profiles")
	f.StringVar(&cfg.Data, "data", cfg.Data, "folder of the embedded database")
	f.StringVar(&cfg.PublicURL, "public-url", cfg.PublicURL, "address under which buyers reach this server (default: the listening address)")
	f.StringVar(&cfg.Payments, "payments", cfg.Payments, "who takes payments: none, or simulator (pretends; never for real sales)")
	f.StringVar(&cfg.AdminKeyFile, "admin-key-file", cfg.AdminKeyFile, "file with the admin key (HOLDFAST_ADMIN_KEY has it directly)")
	f.StringVar(&cfg.LogFormat, "log-format", cfg.LogFormat, "text or json")
	f.StringVar(&cfg.LogLevel, "log-level", cfg.LogLevel, "debug, info, warn or error")
	f.BoolVar(&cfg.Pprof, "pprof", cfg.Pprof, "serve profiles on --ops-listen")
	f.StringSliceVar(&cfg.TrustedProxies, "trusted-proxies", cfg.TrustedProxies, "networks whose X-Forwarded-For is believed, as CIDR")
	f.StringSliceVar(&cfg.TrustedOrigins, "trusted-origins", cfg.TrustedOrigins, "other sites whose pages may send forms here")
	f.StringVar(&cfg.Synchronous, "sqlite-synchronous", cfg.Synchronous, "full: a power loss loses nothing that was answered; normal: it may lose the last moments")
	f.IntVar(&cfg.Lanes, "lanes", cfg.Lanes, "lanes of commands (1 to 8)")
	f.IntVar(&cfg.MaxInFlight, "max-in-flight", cfg.MaxInFlight, "requests worked on at once; more are answered 503")
	f.IntVar(&cfg.AddressPerMinute, "address-per-minute", cfg.AddressPerMinute, "requests of one address in a minute; loopback is not counted; 0: no limit")
	f.DurationVar(&cfg.DrainDelay, "drain-delay", cfg.DrainDelay, "time between /readyz failing and the listener closing")
	f.DurationVar(&cfg.StopTimeout, "stop-timeout", cfg.StopTimeout, "how long accepted requests may take when stopping")
	f.DurationVar(&cfg.SweepEvery, "sweep-every", cfg.SweepEvery, "how often ended holds are settled")
	f.DurationVar(&cfg.ReconcileAfter, "reconcile-after", cfg.ReconcileAfter, "ask the provider about payments pending for so long")
	f.DurationVar(&cfg.ReconcileEnd, "reconcile-before-end", cfg.ReconcileEnd, "ask so long before a hold with a pending payment ends")
	f.DurationVar(&cfg.BoardReload, "board-reload", cfg.BoardReload, "how often the live pictures are read again from the database")
	f.BoolVar(&cfg.BenchFloor, "bench-floor", false, "serve under /bench/floor what bench compares with; anybody may call it")
	f.StringVar(&cfg.ReadyFile, "ready-file", "", "write the address to this file once it is listened on")
	for _, hidden := range []string{"bench-floor", "ready-file"} {
		_ = f.MarkHidden(hidden) // registered just above
	}
	c.PreRunE = func(*cobra.Command, []string) error {
		if err != nil {
			return fmt.Errorf("%w: settings: %w", errUsage, err)
		}
		return cfg.check()
	}
}

// check names the first setting that can't be.
func (c *Config) check() error {
	wrong := func(flag, remedy string) error { return fmt.Errorf("%w: --%s: %s", errUsage, flag, remedy) }
	switch {
	case c.Synchronous != "full" && c.Synchronous != "normal":
		return wrong("sqlite-synchronous", "give full or normal")
	case c.LogFormat != "text" && c.LogFormat != "json":
		return wrong("log-format", "give text or json")
	case c.Lanes < 1 || c.Lanes > 8:
		return wrong("lanes", "give 1 to 8")
	case c.MaxInFlight < 1:
		return wrong("max-in-flight", "give at least 1")
	case c.AddressPerMinute < 0:
		return wrong("address-per-minute", "give 0 for no limit, or a number of requests")
	case c.Pprof && c.OpsListen == "":
		return wrong("pprof", "give --ops-listen too: profiles are not for the public")
	case c.SweepEvery <= 0 || c.ReconcileAfter <= 0 || c.ReconcileEnd <= 0 || c.BoardReload <= 0:
		return wrong("sweep-every, --reconcile-after, --reconcile-before-end and --board-reload", "give times above 0")
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return wrong("log-level", "give debug, info, warn or error")
	}
	_, err := c.proxies()
	return err
}

func (c *Config) proxies() ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, text := range c.TrustedProxies {
		p, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("%w: --trusted-proxies: %q is not a network like 10.0.0.0/8", errUsage, text)
		}
		out = append(out, p)
	}
	return out, nil
}

// adminKey reads the admin key that an operator chose; empty when there is none.
func (c *Config) adminKey() (string, error) {
	if c.AdminKeyFile == "" {
		key := strings.TrimSpace(c.AdminKey) // as headers are
		if key == "" && c.AdminKey != "" {
			return "", fmt.Errorf("%w: HOLDFAST_ADMIN_KEY is blank; give a key or leave it out", errUsage)
		}
		return key, nil
	}
	data, err := os.ReadFile(c.AdminKeyFile)
	if err != nil {
		return "", fmt.Errorf("%w: --admin-key-file: %w", errUsage, err)
	}
	key := strings.TrimSpace(string(data))
	if key == "" {
		return "", fmt.Errorf("%w: --admin-key-file: %s is empty", errUsage, c.AdminKeyFile)
	}
	if c.AdminKey != "" && subtle.ConstantTimeCompare([]byte(key), []byte(c.AdminKey)) != 1 {
		return "", fmt.Errorf("%w: --admin-key-file and HOLDFAST_ADMIN_KEY give different keys; give one", errUsage)
	}
	return key, nil
}

// logger writes what the program has to say; request ids are in every line that belongs to a request.
func (c *Config) logger(w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.LogLevel)) // checked already
	o := &slog.HandlerOptions{Level: level}
	var h slog.Handler = slog.NewTextHandler(w, o)
	if c.LogFormat == "json" {
		h = slog.NewJSONHandler(w, o)
	}
	return slog.New(httpd.LogHandler{Handler: h})
}

func (c *Config) loops() booking.Loops {
	return booking.Loops{
		Times:      booking.Times{AskAfter: c.ReconcileAfter, AskBeforeEnd: c.ReconcileEnd},
		SweepEvery: c.SweepEvery,
	}
}
