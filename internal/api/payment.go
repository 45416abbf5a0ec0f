package api

import (
	"errors"
	"io"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-project/holdfast/internal/booking"
	"github.com/holdfast-project/holdfast/internal/httpd"
	"github.com/holdfast-project/holdfast/internal/payment"
)

func (a *API) paymentRoutes() {
	a.plain(operation{
		id: "payment-callback", method: http.MethodPost, path: "/v1/payments/{provider}/callback", tag: "Payments",
		summary: "A payment provider tells what happened", errors: []int{http.StatusUnauthorized, http.StatusNotFound},
		description: "For payment providers: Standard Webhooks, in the fields webhook-id, webhook-timestamp and webhook-signature. The signature is checked over the raw " +
			"body before anything of it is read. The same notice may come any number of times. Anything but 200 means: tell again.",
	}, "", []*huma.Param{pathParam("provider", "Name of the provider, such as simulator.")},
		map[string]*huma.Response{"200": {Description: "Safe with us. There is nothing in the body."}}, a.callback)
}

func (a *API) callback(w http.ResponseWriter, r *http.Request) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, payment.MaxNoticeBytes))
	if err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			return err
		}
		return httpd.MalformedBody.Problem("The body ended too early.")
	}
	w.Header()["Cache-Control"] = noStore
	err = a.Booking.Notice(r.Context(), r.PathValue("provider"), r.Header, body)
	if errors.Is(err, booking.ErrNoProvider) {
		return httpd.NotFound.Problem("There is no such payment provider.")
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	return nil
}
