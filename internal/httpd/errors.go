package httpd

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/catalog"
	"github.com/holdfast-project/holdfast/internal/identity"
	"github.com/holdfast-project/holdfast/internal/money"
	"github.com/holdfast-project/holdfast/internal/payment"
	"github.com/holdfast-project/holdfast/internal/payment/simulator"
	"github.com/holdfast-project/holdfast/internal/ticket"
	"github.com/holdfast-project/holdfast/internal/venue"
)

// ProviderWait is when asking again has a chance after the payment provider did not answer.
const ProviderWait = 2 * time.Second

// Errors is the one table from this program's errors to answers. What names places (booking.GoneError, booking.SeatsError) is completed by the handler,
// which knows the event's layout.
var Errors = NewTable(
	Rule{Is: booking.ErrGone, Kind: PlacesGone},
	Rule{As: asInput},
	Rule{Is: booking.ErrCustomerLimit, Kind: CustomerLimit},
	Rule{As: asSale},
	Rule{Is: booking.ErrNotFound, Kind: NotFound},
	Rule{Is: booking.ErrPaused, Kind: SalePaused},
	Rule{Is: booking.ErrSaleClosed, Kind: SaleClosed},
	Rule{Is: booking.ErrHoldEnded, Kind: HoldEnded},
	Rule{Is: booking.ErrAlreadyBooked, Kind: HoldNotLive},
	Rule{Is: booking.ErrCeiling, Kind: HoldAtCeiling},
	Rule{Is: booking.ErrTooLateToPay, Kind: TooLateToPay},
	Rule{Is: booking.ErrKeyReused, Kind: IdempotencyKeyReused},
	Rule{Is: booking.ErrKeyInProgress, Kind: IdempotencyInProgress},
	Rule{Is: booking.ErrNotCancellable, Kind: NotCancellable},
	Rule{Is: booking.ErrQuoteOver, Kind: QuoteOver},
	Rule{Is: booking.ErrLimitBelowTaken, Kind: LimitBelowTaken},
	Rule{Is: booking.ErrSeatsTaken, Kind: SeatsTaken},
	Rule{Is: booking.ErrOrphan, Kind: OrphanSeat},
	Rule{Is: booking.ErrNoProvider, Kind: PaymentsNotConfigured},
	Rule{As: after(booking.ErrBusy, Busy, BusyWait)},
	Rule{As: after(booking.ErrProvider, Unavailable, ProviderWait)},
	Rule{As: after(booking.ErrUnavailable, Unavailable, BusyWait)},

	Rule{Is: catalog.ErrNotFound, Kind: NotFound},
	Rule{Is: catalog.ErrSlugTaken, Kind: SlugTaken},
	Rule{Is: catalog.ErrVersion, Kind: PreconditionFailed},
	Rule{As: asDraft},
	Rule{As: asLayout},
	Rule{Is: ticket.ErrNotFound, Kind: NotFound},
	Rule{Is: money.ErrCurrency, Kind: Validation, Detail: "A currency is not an ISO 4217 code."},

	Rule{Is: identity.ErrID, Kind: NotFound},
	Rule{Is: identity.ErrTokenExpired, Kind: Unauthorized, Detail: "The token has expired; POST /v1/sessions gives a new one."},
	Rule{Is: identity.ErrToken, Kind: Unauthorized, Detail: "The token is not valid; POST /v1/sessions gives one."},
	Rule{As: field(identity.ErrCursor, "cursor", "This is not a cursor of this list with these filters; begin without one.")},

	Rule{Is: payment.ErrNotAuthentic, Kind: NotAuthentic},
	Rule{Is: payment.ErrUnknownPayment, Kind: NotFound},
	Rule{Is: payment.ErrDeclined, Kind: PaymentDeclined},
	Rule{As: after(payment.ErrUnavailable, Unavailable, ProviderWait)},
	Rule{As: asAction},

	// Whoever waited for us has gone, or the time for the request is over: what was begun may still be done.
	Rule{As: after(context.DeadlineExceeded, Unavailable, BusyWait)},
	Rule{As: after(context.Canceled, Unavailable, BusyWait)},
)

// byCode finds the kind that an error of the engine names.
var byCode = func() map[string]*Kind {
	all := map[string]*Kind{}
	for _, k := range []*Kind{
		UnknownSeat, DuplicateSeat, TooManyPlaces, NothingAsked, PoolMismatch, UnknownPool, PassengersRequired, Validation,
	} {
		all[k.Code] = k
	}
	return all
}()

// Field makes a problem about one field of the request: a JSON pointer into the body, or the name of a parameter.
func (k *Kind) Field(pointer, detail string) Problem {
	p := k.Problem("")
	p.Errors = []FieldError{{Pointer: pointer, Detail: detail, Code: k.Code}}
	return p
}

func asInput(err error) (Problem, bool) {
	in, ok := errors.AsType[*booking.InputError](err)
	if !ok {
		return Problem{}, false
	}
	k := byCode[in.Code]
	if k == nil {
		k = Validation
	}
	return k.Field("#"+in.Pointer, in.Detail), true
}

func asSale(err error) (Problem, bool) {
	if !errors.Is(err, booking.ErrNotOnSale) {
		return Problem{}, false
	}
	p := NotOnSale.Problem("")
	if sale, ok := errors.AsType[*booking.SaleError](err); ok {
		p.Extra = map[string]any{"opensAt": sale.OpensAt.UTC().Format(time.RFC3339)}
	}
	return p, true
}

func asDraft(err error) (Problem, bool) {
	fields, ok := errors.AsType[catalog.FieldErrors](err)
	if !ok {
		return Problem{}, false
	}
	p := Validation.Problem("")
	for _, f := range fields {
		p.Errors = append(p.Errors, FieldError{Pointer: "#" + f.Pointer, Detail: f.Detail, Code: Validation.Code})
	}
	return p, true
}

// asLayout turns zones[0].rows[3] into the pointer #/zones/0/rows/3; what comes after a space ("place 7") is not part of the file.
func asLayout(err error) (Problem, bool) {
	path, ok := errors.AsType[*venue.PathError](err)
	if !ok {
		return Problem{}, false
	}
	if errors.Is(path.Err, venue.ErrSyntax) {
		return MalformedBody.Problem(path.Err.Error()), true
	}
	place, _, _ := strings.Cut(path.Path, " ")
	return Validation.Field(Pointer(place), path.Error()), true
}

func asAction(err error) (Problem, bool) {
	if !errors.Is(err, simulator.ErrAction) {
		return Problem{}, false
	}
	return Validation.Problem(err.Error()), true
}

func after(is error, k *Kind, wait time.Duration) func(error) (Problem, bool) {
	return func(err error) (Problem, bool) {
		if !errors.Is(err, is) {
			return Problem{}, false
		}
		p := k.Problem("")
		p.RetryAfter = wait
		return p, true
	}
}

func field(is error, pointer, detail string) func(error) (Problem, bool) {
	return func(err error) (Problem, bool) { return Validation.Field(pointer, detail), errors.Is(err, is) }
}

// Pointer turns a path such as seats[0].name into a JSON pointer in the form of a fragment, #/seats/0/name.
func Pointer(path string) string {
	var b strings.Builder
	b.WriteByte('#')
	for part := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		if _, err := strconv.Atoi(part); err != nil {
			part = strings.ReplaceAll(strings.ReplaceAll(part, "~", "~0"), "/", "~1")
		}
		b.WriteByte('/')
		b.WriteString(part)
	}
	return b.String()
}
