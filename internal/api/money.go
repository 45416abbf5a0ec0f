package api

import "github.com/holdfast-project/holdfast/internal/money"

// Money is an amount.
type Money struct {
	Amount   int64  `json:"amount" doc:"Minor units of the currency: 1200 EUR are 12 euros, 1200 JPY are 1200 yen."`
	Currency string `json:"currency" doc:"ISO 4217 code" example:"EUR"`
}

func amount(m money.Money) Money { return Money{m.Amount, m.Currency} }
