package api

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/httpd"
	"github.com/holdfast-project/holdfast/internal/ticket"
)

// TicketPixels is the side of a ticket's picture.
const TicketPixels = 512

// Ticket is the right to one place.
type Ticket struct {
	TicketID string `json:"ticketId"`
	Seat     string `json:"seat,omitempty"`
	Pool     string `json:"pool,omitempty"`
	Holder   string `json:"holder,omitempty"`
	Status   string `json:"status" enum:"valid,used,void"`
	Code     string `json:"code" doc:"What a gate reads; the picture shows the same. A secret of its holder."`
}

// TicketList is a list of tickets.
type TicketList struct {
	Items []Ticket `json:"items"`
}

type ticketListOutput struct{ Body TicketList }

// TicketKey checks ticket codes.
type TicketKey struct {
	KeyID     uint32     `json:"keyId" doc:"Bytes 1 to 4 of a code say which key signed it."`
	Algorithm string     `json:"algorithm" enum:"Ed25519"`
	PublicKey string     `json:"publicKey" doc:"32 bytes in base64."`
	RetiresAt *time.Time `json:"retiresAt,omitempty" doc:"After this instant the codes that it signed are void."`
}

// TicketKeyList is a list of keys.
type TicketKeyList struct {
	Items []TicketKey `json:"items"`
}

type ticketKeysOutput struct {
	CacheControl string `header:"Cache-Control"`
	Body         TicketKeyList
}

func (a *API) ticketRoutes() {
	const tag = "Tickets"
	register(a, operation{
		id: "list-tickets", method: http.MethodGet, path: "/v1/bookings/{booking}/tickets", tag: tag, access: linked,
		summary: "The tickets of an own booking", errors: []int{http.StatusNotFound},
	}, a.listTickets)
	a.plain(operation{
		id: "get-ticket-picture", method: http.MethodGet, path: "/v1/bookings/{booking}/tickets/{ticket}.png", tag: tag, access: linked,
		summary: "The QR code of a ticket", errors: []int{http.StatusNotFound},
	}, "/v1/bookings/{booking}/tickets/{file}",
		[]*huma.Param{pathParam("booking", ""), pathParam("ticket", ""), {
			Name: "link", In: "query", Description: "The token of the booking's link, instead of a session.", Schema: &huma.Schema{Type: huma.TypeString},
		}},
		map[string]*huma.Response{"200": {
			Description: "A picture of " + strconv.Itoa(TicketPixels) + " pixels.",
			Content:     map[string]*huma.MediaType{"image/png": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}},
		}}, a.ticketPicture)
	register(a, operation{
		id: "list-ticket-keys", method: http.MethodGet, path: "/v1/keys/tickets", tag: tag,
		summary: "The public keys that check ticket codes", description: "All that a gate needs to check codes without a connection. The first one signs new codes.",
	}, a.ticketKeys)
}

func (a *API) tickets(ctx context.Context, id booking.BookingID) ([]Ticket, error) {
	list, err := a.Tickets.Tickets(ctx, id)
	if err != nil {
		return nil, err
	}
	out := make([]Ticket, len(list))
	for i, t := range list {
		out[i] = Ticket{TicketID: t.ID.String(), Seat: t.Seat, Pool: t.Pool, Holder: t.Holder, Status: t.Status.String(), Code: t.Code}
	}
	return out, nil
}

func (a *API) listTickets(ctx context.Context, in *bookingInput) (*ticketListOutput, error) {
	_, b, err := a.readable(ctx, in.Booking, in.Link, callOf(ctx).customer)
	if err != nil {
		return nil, err
	}
	list, err := a.tickets(ctx, b.ID)
	return &ticketListOutput{TicketList{list}}, err
}

func (a *API) ticketPicture(w http.ResponseWriter, r *http.Request) error {
	noTicket := httpd.NotFound.Problem("There is no such ticket of this booking.")
	c := &call{r: r, w: w}
	if err := a.let(c, linked); err != nil {
		return err
	}
	_, b, err := a.readable(r.Context(), r.PathValue("booking"), r.URL.Query().Get("link"), c.customer)
	if err != nil {
		return err
	}
	name, png := strings.CutSuffix(r.PathValue("file"), ".png")
	id, err := booking.ParseTicketID(name)
	if err != nil || !png {
		return noTicket
	}
	t, err := a.Tickets.Ticket(r.Context(), id)
	if errors.Is(err, ticket.ErrNotFound) || err == nil && t.Booking != b.ID {
		return noTicket
	}
	if err != nil {
		return err
	}
	picture, err := ticket.QR(t.Code, TicketPixels)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "image/png")
	h.Set("Content-Length", strconv.Itoa(len(picture)))
	_, _ = w.Write(picture) // the client may have gone
	return nil
}

func (a *API) ticketKeys(context.Context, *struct{}) (*ticketKeysOutput, error) {
	out := &ticketKeysOutput{CacheControl: "public, max-age=60"}
	for _, k := range a.Keys.TicketPublicKeys(a.Now()) {
		out.Body.Items = append(out.Body.Items, describeKey(k.Key, k.RetiresAt))
	}
	return out, nil
}

func describeKey(public ed25519.PublicKey, retires time.Time) TicketKey {
	out := TicketKey{KeyID: uint32(ticket.KeyIDOf(public)), Algorithm: "Ed25519", PublicKey: base64.StdEncoding.EncodeToString(public)}
	if !retires.IsZero() {
		at := retires.UTC()
		out.RetiresAt = &at
	}
	return out
}

// ticketKey finds the public key that checks a code.
func (a *API) ticketKey(id ticket.KeyID) ed25519.PublicKey {
	for _, k := range a.Keys.TicketPublicKeys(a.Now()) {
		if ticket.KeyIDOf(k.Key) == id {
			return k.Key
		}
	}
	return nil
}
