package httpd

// Kind is a kind of problem: what all its occurrences have in common, and what its page says.
type Kind struct {
	Code      string // stable, part of the interface
	Title     string
	Status    int
	Retryable bool   // the same request may succeed later
	What      string // what happened
	Do        string // what to do
}

// Problem makes an occurrence; detail may be empty.
func (k *Kind) Problem(detail string) Problem {
	return Problem{Type: problemsPath + k.Code, Code: k.Code, Title: k.Title, Status: k.Status, Detail: detail, Retryable: k.Retryable}
}

// kinds collects every kind in the order of its declaration, for the pages.
var kinds []*Kind

func kind(k Kind) *Kind {
	kinds = append(kinds, &k)
	return &k
}

// Kinds of problems. A limit per customer is 409, not 422: the request is well formed, and it can be right again when one of the
// customer's holds ends.
var (
	PlacesGone = kind(Kind{"places-gone", "Places are gone", 409, false,
		"At least one of the places was taken by somebody else in the meantime, or a pool has not enough units left. Nothing was held: a hold is all or none. The members seats or pools name what is gone.",
		"Ask for one of the alternatives where there are any, or read the availability again and choose other places."})
	UnknownSeat = kind(Kind{"unknown-seat", "No such seat", 422, false,
		"A seat code is not one of this event's layout.",
		"Use the seat codes of GET /v1/events/{event}/seats or of the layout, exactly as they are spelled there."})
	DuplicateSeat = kind(Kind{"duplicate-seat", "Seat named twice", 422, false,
		"The request names a seat more than once.",
		"Name each seat once."})
	TooManyPlaces = kind(Kind{"too-many-places", "Too many places in one hold", 422, false,
		"The event allows fewer places in one hold than were asked for.",
		"Ask for at most as many places as the event's policy says."})
	NothingAsked = kind(Kind{"nothing-asked", "No places asked for", 422, false,
		"The request names neither seats nor units of a pool.",
		"Name seats, or a pool with a quantity of at least 1, or ask for the best places."})
	PoolMismatch = kind(Kind{"pool-mismatch", "Seat belongs to another pool", 422, false,
		"A seat's pool follows from the layout, and the request names another one.",
		"Leave the pool out, or name the one that the seat belongs to."})
	UnknownPool = kind(Kind{"unknown-pool", "No such pool", 422, false,
		"The event has no pool of that name.",
		"Use the pool names of GET /v1/events/{event}."})
	OrphanSeat = kind(Kind{"orphan-seat", "A single seat would be left over", 409, false,
		"The event does not allow a choice that leaves one seat alone between taken ones.",
		"Move the choice by one seat, or ask for the best places."})
	CustomerLimit = kind(Kind{"customer-limit", "Limit per customer reached", 409, false,
		"The event allows one customer only so many places over all holds and bookings.",
		"Ask for fewer places, or release a hold first."})
	NotOnSale = kind(Kind{"not-on-sale", "Not on sale yet", 403, true,
		"The sale of this event opens later; the member opensAt says when.",
		"Come back at that time."})
	SalePaused = kind(Kind{"sale-paused", "Sale is paused", 403, true,
		"The organiser has stopped the sale for a while. Holds and bookings are kept.",
		"Try again later."})
	SaleClosed = kind(Kind{"sale-closed", "Sale is closed", 403, false,
		"The sale of this event is over, or the event was cancelled.",
		"Choose another event."})
	PassRequired = kind(Kind{"pass-required", "Pass of the waiting room required", 403, false,
		"This event has a waiting room, and the request carries no valid pass.",
		"Join with POST /v1/events/{event}/queue and come back with the pass."})
	TooManyRequests = kind(Kind{"too-many-requests", "Too many requests", 429, true,
		"A rate limit was reached. The RateLimit fields say which one, and Retry-After when the next request has a chance.",
		"Wait as long as Retry-After says."})
	HoldEnded = kind(Kind{"hold-ended", "Hold has ended", 410, false,
		"The time of the hold is over, or it was released. Its places are on sale again.",
		"Hold places again."})
	HoldAtCeiling = kind(Kind{"hold-at-ceiling", "Hold cannot be prolonged further", 409, false,
		"The hold has reached the longest time that the event allows.",
		"Check out before it ends."})
	HoldNotLive = kind(Kind{"hold-not-live", "Hold is not live", 409, false,
		"The hold was booked already, so this cannot be done with it any more.",
		"Look at the hold: it names its booking."})
	PaymentPending = kind(Kind{"payment-pending", "Payment is pending", 409, true,
		"A payment for this hold was started and has not ended.",
		"Finish or leave that payment; its address is in the answer of the checkout."})
	TooLateToPay = kind(Kind{"too-late-to-pay", "Too late to pay", 409, false,
		"So little time is left of the hold that a payment could not be finished.",
		"Ask for more time, or hold places again."})
	PassengersRequired = kind(Kind{"passengers-required", "Passengers required", 422, false,
		"A flight needs the name of a passenger for each ticket.",
		"Send passengers with one name for each place."})
	IdempotencyKeyMissing = kind(Kind{"idempotency-key-missing", "Idempotency-Key required", 400, false,
		"This call must carry an Idempotency-Key, so that repeating it is safe.",
		"Send a new random key with each new request, and the same key when repeating one."})
	IdempotencyKeyInvalid = kind(Kind{"idempotency-key-invalid", "Idempotency-Key is not usable", 400, false,
		"The Idempotency-Key is empty, longer than 255 characters, has characters that are not visible ASCII, or came twice.",
		"Send one key of 1 to 255 visible ASCII characters, at best a random one."})
	IdempotencyKeyReused = kind(Kind{"idempotency-key-reused", "Idempotency-Key belongs to another request", 422, false,
		"The key was used before with another body. Nothing was done.",
		"Use a new key for a new request."})
	IdempotencyInProgress = kind(Kind{"idempotency-in-progress", "Request is in progress", 409, true,
		"A request with the same Idempotency-Key is being worked on.",
		"Repeat the request in a second: it will give the answer of the first."})
	NotCancellable = kind(Kind{"not-cancellable", "Booking cannot be cancelled", 409, false,
		"The booking is not confirmed, was cancelled before, or the event's rules allow no cancellation now.",
		"Look at the booking; ask the organiser."})
	QuoteOver = kind(Kind{"quote-over", "Quote is over", 410, false,
		"The quote of the cancellation has expired, so the refund may be another one now.",
		"Ask for a new quote with POST /v1/bookings/{booking}/cancellation."})
	SeatsTaken = kind(Kind{"seats-taken", "Seats are taken", 409, false,
		"At least one of the seats is held or sold; the member seats names them. Nothing was changed.",
		"Leave those seats out, or wait until they are free."})
	PaymentDeclined = kind(Kind{"payment-declined", "Payment provider declined", 409, false,
		"The payment provider does not do this with the payment any more: its session is over, or it is paid.",
		"Look at the booking; hold places again if it failed."})
	LimitBelowTaken = kind(Kind{"limit-below-taken", "Limit is below what is taken", 409, false,
		"More places are held or sold already than the new limit would allow.",
		"Choose a limit of at least what is taken."})
	SlugTaken = kind(Kind{"slug-taken", "Slug is taken", 409, false,
		"Another event has this slug.",
		"Choose another one."})
	PreconditionFailed = kind(Kind{"precondition-failed", "Changed by somebody else", 412, false,
		"What was to be changed is not what the If-Match field names any more.",
		"Read it again, and repeat the change with the new ETag."})
	PreconditionRequired = kind(Kind{"precondition-required", "If-Match required", 428, false,
		"Changes must say which version they were made for.",
		"Send the ETag of the last read in If-Match."})
	PaymentsNotConfigured = kind(Kind{"payments-not-configured", "Payments are not configured", 503, false,
		"This server has no payment provider, so it cannot take money.",
		"Tell the operator to configure one."})
	Validation = kind(Kind{"validation", "Request is not valid", 422, false,
		"The request can be read but breaks its rules; errors names each field.",
		"Correct the fields. /openapi.json has the schema."})
	MalformedBody = kind(Kind{"malformed-body", "Body cannot be read", 400, false,
		"The body is not JSON, or not UTF-8.",
		"Send one JSON object as application/json."})
	BodyTooLarge = kind(Kind{"body-too-large", "Body is too large", 413, false,
		"The body has more bytes than this call takes.",
		"Send a smaller one."})
	UnsupportedMediaType = kind(Kind{"unsupported-media-type", "Unsupported media type", 415, false,
		"The Content-Type of the body is not one that this call takes.",
		"Send application/json."})
	Unauthorized = kind(Kind{"unauthorized", "Not signed in", 401, false,
		"The request carries no valid session or key.",
		"Get a session with POST /v1/sessions and send its token as Authorization: Bearer …"})
	NotAuthentic = kind(Kind{"not-authentic", "Not authentic", 401, false,
		"The signature of the callback does not fit its body, is too old, or was made with an unknown key. Nothing was done.",
		"Check the signing secret and the clock."})
	Forbidden = kind(Kind{"forbidden", "Not allowed", 403, false,
		"The session or key does not allow this, or the request came from the page of another site.",
		"Use one that does, from the site's own pages."})
	NotFound = kind(Kind{"not-found", "Not found", 404, false,
		"There is nothing at this address, or it belongs to somebody else.",
		"Check the address and the session."})
	MethodNotAllowed = kind(Kind{"method-not-allowed", "Method not allowed", 405, false,
		"The address exists, but not with this method.",
		"Use one of the methods in the Allow field."})
	Busy = kind(Kind{"busy", "Too busy", 503, true,
		"The server has as much work as it can finish in time, and refused this request before doing anything.",
		"Wait as long as Retry-After says, then repeat the request."})
	Unavailable = kind(Kind{"unavailable", "Unavailable", 503, true,
		"Something that the server needs, such as its database, does not answer. Whether the request was carried out may be unknown.",
		"Wait as long as Retry-After says, then repeat the request with the same Idempotency-Key."})
	Internal = kind(Kind{"internal", "Internal error", 500, false,
		"The server made a mistake. It was logged under the X-Request-Id of the answer.",
		"Repeat the request with the same Idempotency-Key, or tell the operator the request id."})
)
