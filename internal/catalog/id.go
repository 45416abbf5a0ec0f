package catalog

import (
	"crypto/rand"
	"encoding/binary"

	"github.com/holdfast-project/holdfast/internal/identity"
)

// EventID names an event: a positive number, random, so that ids of a database say nothing about how many events it has.
type EventID int64

const eventPrefix = "evt"

// NewEventID makes a random one.
func NewEventID() EventID {
	var b [8]byte
	for {
		rand.Read(b[:])
		if id := EventID(binary.BigEndian.Uint64(b[:]) >> 1); id > 0 {
			return id
		}
	}
}

// ParseEventID reads the text form; anything else is identity.ErrID.
func ParseEventID(text string) (EventID, error) {
	var b [8]byte
	if err := identity.DecodeID(eventPrefix, text, b[:]); err != nil {
		return 0, err
	}
	id := EventID(binary.BigEndian.Uint64(b[:]))
	if id <= 0 {
		return 0, identity.ErrID
	}
	return id, nil
}

// Bytes is the id as ids of holds, payments and tickets carry it.
func (e EventID) Bytes() [8]byte {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(e))
	return b
}

func (e EventID) String() string {
	b := e.Bytes()
	return identity.EncodeID(eventPrefix, b[:])
}
