// Package money holds amounts that never lose their currency: integer minor units and an ISO 4217 code.
package money

import (
	"errors"
	"fmt"
	"math"

	"github.com/bojanz/currency"
)

// Errors of this package.
var (
	ErrCurrency = errors.New("currency is not an ISO 4217 code")
	ErrMismatch = errors.New("amounts are in different currencies")
	ErrOverflow = errors.New("amount is too large")
)

// Money is an amount in minor units (cents for EUR, yen for JPY) of a currency.
type Money struct {
	Amount   int64  `json:"amount" doc:"Minor units of the currency (cents for EUR, yen for JPY)"`
	Currency string `json:"currency" doc:"ISO 4217 code" minLength:"3" maxLength:"3"`
}

// New makes an amount; an unknown currency is ErrCurrency.
func New(amount int64, code string) (Money, error) {
	if code == "" || !currency.IsValid(code) { // the library takes "" for a currency
		return Money{}, fmt.Errorf("%w: %q", ErrCurrency, code)
	}
	return Money{Amount: amount, Currency: code}, nil
}

// IsZero says whether nothing is owed.
func (m Money) IsZero() bool { return m.Amount == 0 }

// Add sums two amounts of one currency.
func (m Money) Add(o Money) (Money, error) {
	if m.Currency != o.Currency {
		return Money{}, fmt.Errorf("%w: %s and %s", ErrMismatch, m.Currency, o.Currency)
	}
	if (o.Amount > 0 && m.Amount > math.MaxInt64-o.Amount) || (o.Amount < 0 && m.Amount < math.MinInt64-o.Amount) {
		return Money{}, ErrOverflow
	}
	return Money{Amount: m.Amount + o.Amount, Currency: m.Currency}, nil
}

// Percent is the part of m, rounded down to a whole minor unit (the house never pays out more than it took).
func (m Money) Percent(p int) Money {
	q, r := m.Amount/100, m.Amount%100
	return Money{Amount: q*int64(p) + r*int64(p)/100, Currency: m.Currency}
}

// Digits is the number of decimals that the currency is written with (2 for EUR, 0 for JPY, 3 for KWD).
func (m Money) Digits() int {
	d, _ := currency.GetDigits(m.Currency)
	return int(d)
}

func (m Money) String() string {
	a, err := currency.NewAmountFromInt64(m.Amount, m.Currency)
	if err != nil {
		return fmt.Sprintf("%d %s", m.Amount, m.Currency)
	}
	return a.String()
}
