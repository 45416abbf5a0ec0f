package main

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/outbox"
	"github.com/holdfast-project/holdfast/internal/sqlite"
)

// metrics counts what the engine tells. Names and labels are a promise to dashboards: docs/operating.md lists them.
type metrics struct {
	*prometheus.Registry
	commands    *prometheus.CounterVec
	took        *prometheus.HistogramVec
	batch       prometheus.Histogram
	laneWait    prometheus.Histogram
	batchTook   prometheus.Histogram
	single      prometheus.Counter
	early       prometheus.Counter
	expired     prometheus.Counter
	notices     *prometheus.CounterVec
	asked       *prometheus.CounterVec
	refunds     *prometheus.CounterVec
	alerts      *prometheus.CounterVec
	loops       *prometheus.CounterVec
	requests    *prometheus.HistogramVec
	published   prometheus.Counter
	publishErrs prometheus.Counter
	outboxRows  prometheus.Gauge
	outboxAge   prometheus.Gauge
	lag         *prometheus.GaugeVec
	refundsDue  prometheus.Gauge
}

var _ booking.Observer = (*metrics)(nil)

func newMetrics() *metrics {
	const ns = "holdfast"
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: ns, Name: name, Help: help}, labels)
	}
	one := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: ns, Name: name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: ns, Name: name, Help: help})
	}
	times := func(name, help string) prometheus.HistogramOpts {
		return prometheus.HistogramOpts{Namespace: ns, Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(0.0005, 2, 15)}
	}
	m := &metrics{
		Registry: prometheus.NewRegistry(),
		commands: counter("commands_total", "Commands by kind (place, release, checkout, …) and result.", "command", "result"),
		took:     prometheus.NewHistogramVec(times("command_seconds", "Time from entering the lane to the answer."), []string{"command"}),
		batch: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: ns, Name: "batch_commands", Help: "Commands in one batch.", Buckets: prometheus.ExponentialBuckets(1, 2, 10),
		}),
		laneWait:    prometheus.NewHistogram(times("lane_wait_seconds", "Time that the oldest command of a batch had waited in its lane.")),
		batchTook:   prometheus.NewHistogram(times("batch_seconds", "Time to decide and commit a batch.")),
		single:      one("single_commands_total", "Commands tried one by one because their batch was refused."),
		early:       one("early_refusals_total", "Holds refused from memory, without the database."),
		expired:     one("holds_expired_total", "Holds settled after their time was over."),
		notices:     counter("payment_notices_total", "Callbacks of payment providers by what became of them.", "kind"),
		asked:       counter("payment_lookups_total", "Questions of the reconciler to payment providers by the answer.", "status"),
		refunds:     counter("refunds_total", "Refunds by result.", "result"),
		alerts:      counter("alerts_total", "Things that a person should look at.", "kind"),
		loops:       counter("loop_failures_total", "Failed rounds of background loops.", "loop"),
		requests:    prometheus.NewHistogramVec(times("http_request_seconds", "Requests by route and status."), []string{"route", "status"}),
		published:   one("messages_published_total", "Messages handed to all their subscribers."),
		publishErrs: one("message_failures_total", "Messages that could not be published and will be tried again."),
		outboxRows:  gauge("outbox_messages", "Messages still to be published."),
		outboxAge:   gauge("outbox_lag_seconds", "Age of the oldest message still to be published."),
		lag:         prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: ns, Name: "loop_lag_seconds", Help: "Age of the oldest work that a loop has not done."}, []string{"loop"}),
		refundsDue:  gauge("refunds_open", "Refunds decided and not done."),
	}
	m.MustRegister(m.commands, m.took, m.batch, m.laneWait, m.batchTook, m.single, m.early, m.expired, m.notices, m.asked, m.refunds, m.alerts, m.loops,
		m.requests, m.published, m.publishErrs, m.outboxRows, m.outboxAge, m.lag, m.refundsDue,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// database shows what the database was asked to do.
func (m *metrics) database(db *sqlite.DB) {
	m.MustRegister(
		prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: "holdfast", Name: "db_commits_total", Help: "Write transactions committed."},
			func() float64 { return float64(db.Commits()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: "holdfast", Name: "db_statements_total", Help: "Statements sent to the database."},
			func() float64 { return float64(db.Statements()) }),
	)
}

// Batch and the other methods are booking.Observer.
func (m *metrics) Batch(n int, waited time.Duration) {
	m.batch.Observe(float64(n))
	m.laneWait.Observe(waited.Seconds())
}
func (m *metrics) BatchDone(took time.Duration) { m.batchTook.Observe(took.Seconds()) }
func (m *metrics) Single(n int)                 { m.single.Add(float64(n)) }

func (m *metrics) Result(c booking.Command, r booking.Result, took time.Duration) {
	name := booking.CommandName(c)
	m.commands.WithLabelValues(name, r.Outcome()).Inc()
	m.took.WithLabelValues(name).Observe(took.Seconds())
	if _, ok := c.(*booking.Expire); ok && r.Err == nil && !r.Replay {
		m.expired.Inc()
	}
}
func (m *metrics) RefusedEarly(int)             { m.early.Inc() }
func (m *metrics) Notice(kind string)           { m.notices.WithLabelValues(kind).Inc() }
func (m *metrics) Asked(status string)          { m.asked.WithLabelValues(status).Inc() }
func (m *metrics) Refund(result string)         { m.refunds.WithLabelValues(result).Inc() }
func (m *metrics) Alert(kind, _ string)         { m.alerts.WithLabelValues(kind).Inc() }
func (m *metrics) LoopFailed(l string, _ error) { m.loops.WithLabelValues(l).Inc() }

// request is httpd's report of an answer.
func (m *metrics) request(route string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Observe(took.Seconds())
}

// relay is what the outbox tells.
func (m *metrics) relay(log *slog.Logger) outbox.Observer {
	return outbox.Observer{
		Published: func(outbox.Message, time.Duration) { m.published.Inc() },
		Failed: func(msg outbox.Message, err error) {
			m.publishErrs.Inc()
			log.Warn("message not published yet", "message", msg.MessageID, "attempts", msg.Attempts+1, "error", err)
		},
		Lag: func(rows int, oldest time.Duration) {
			m.outboxRows.Set(float64(rows))
			m.outboxAge.Set(oldest.Seconds())
		},
		Trouble: func(err error) {
			m.loops.WithLabelValues("relay").Inc()
			log.Error("outbox", "error", err)
		},
	}
}

// measure keeps the lag of the engine's loops current until ctx ends.
func (m *metrics) measure(ctx context.Context, s *booking.Service) (int, error) {
	l, err := s.Lag(ctx)
	if err != nil {
		return 0, err
	}
	m.lag.WithLabelValues("sweep").Set(l.Sweep.Seconds())
	m.lag.WithLabelValues("reconcile").Set(l.Reconcile.Seconds())
	m.lag.WithLabelValues("refund").Set(l.Refund.Seconds())
	m.refundsDue.Set(float64(l.Refunds))
	return 0, nil
}
