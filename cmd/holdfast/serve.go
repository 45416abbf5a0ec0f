package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/sqlite"
)

func newServeCommand() *cobra.Command {
	var cfg Config
	c := &cobra.Command{
		Use: "serve", Short: "Serve what is in the data folder", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			a, err := open(c.Context(), cfg, c.ErrOrStderr())
			if err != nil {
				return err
			}
			a.announce()
			if err := a.ready(); err != nil {
				return errors.Join(err, a.server.Close(), a.close())
			}
			return a.run(c.Context())
		},
	}
	loadConfig(c, &cfg)
	return c
}

// announce says in one line what was chosen.
func (a *app) announce() {
	payments := a.cfg.Payments
	a.log.Info("serving", "address", a.localURL(), "operators", a.server.OpsAddr(), "database", "sqlite in "+a.cfg.Data,
		"synchronous", a.cfg.Synchronous, "payments", payments, "processes", "one only: the embedded database is not shared")
	if !a.booking.TakesPayments() {
		a.log.Warn("no payment provider: paid checkouts are refused; places that cost nothing can be booked")
	}
	if payments == "simulator" {
		a.log.Warn("payments are only pretended by the simulator: no money moves")
	}
}

func newAuditCommand() *cobra.Command {
	var cfg Config
	c := &cobra.Command{
		Use: "audit EVENT…", Short: "Recompute the promises for events from the tables; exit 1 if one is broken", Args: cobra.MinimumNArgs(1),
		Long: "Recompute from the tables, in one snapshot for each event, that every place has at most one owner, that counts agree with holds and bookings,\n" +
			"and that every payment ended in one booking or one refund. EVENT is an id or a slug. The server may be running.",
		RunE: func(c *cobra.Command, args []string) (err error) {
			events, db, err := openCatalog(c.Context(), cfg)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, db.Close()) }()
			broken := 0
			for _, name := range args {
				e, err := events.Resolve(c.Context(), name)
				if err != nil {
					return fmt.Errorf("%w: event %q: %w", errUsage, name, err)
				}
				books, err := sqlite.NewStore(db).Books(c.Context(), e.ID)
				if err != nil {
					return err
				}
				found := booking.Audit(books)
				broken += len(found)
				fmt.Fprintf(c.OutOrStdout(), "%s: %d seats touched, %d holds, %d bookings, %d payments, %d refunds: %d violations\n",
					e.Slug, len(books.Seats), len(books.Holds), len(books.Bookings), len(books.Payments), len(books.Refunds), len(found))
				for _, v := range found {
					fmt.Fprintf(c.OutOrStdout(), "  %s: %s\n", v.Rule, v.Detail)
				}
			}
			if broken > 0 {
				return fmt.Errorf("the audit found %d violations", broken)
			}
			return nil
		},
	}
	loadConfig(c, &cfg)
	return c
}
