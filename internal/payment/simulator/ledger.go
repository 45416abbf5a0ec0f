package simulator

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/holdfast-project/holdfast/internal/money"
)

// ErrLedger says that the ledger's file is damaged before its last line.
var ErrLedger = errors.New("the simulator's ledger is damaged")

// maxLineBytes is more than any record can have: four texts in JSON, where a byte can take six.
const maxLineBytes = 8 * 6 * maxTextBytes

// The kinds of records.
const (
	recordOpen   = "open"
	recordAct    = "act"
	recordClose  = "close"
	recordRefund = "refund"
	recordTold   = "told"
	recordGaveUp = "gave-up"
)

var kinds = []string{recordOpen, recordAct, recordClose, recordRefund, recordTold, recordGaveUp}

// record is a line of the ledger: one fact. Which fields it has depends on its kind. No mail address is kept: nothing here needs it.
type record struct {
	Kind        string      `json:"kind"`
	Payment     string      `json:"payment"`
	At          time.Time   `json:"at"`
	Until       time.Time   `json:"until,omitzero"` // open: the session's end; act: when the callbacks are due
	Money       money.Money `json:"money,omitzero"` // open: price; act: charged, nothing if it failed; refund
	Page        string      `json:"page,omitempty"`
	Description string      `json:"description,omitempty"`
	Language    string      `json:"language,omitempty"`
	Refund      string      `json:"refund,omitempty"`
	Callbacks   int         `json:"callbacks,omitempty"`
	OutOfOrder  bool        `json:"outOfOrder,omitempty"`
	DistinctIDs bool        `json:"distinctIds,omitempty"`
	Action      int         `json:"action,omitempty"` // told, gave-up: of which callback
	Number      int         `json:"number,omitempty"`
}

// ledger appends records to a file. Every record is one write() and none is synced: what was handed to the kernel survives a kill of the process, which
// is what the simulator must survive; a provider's disk that loses power is not part of the play.
type ledger struct {
	file *os.File // nil: memory only
	size int64
	err  error // why nothing can be written any more
}

// openLedger reads the records that there are, each to replay, then nil. A last line without its end was torn by a kill and is cut off: its call was never answered.
func openLedger(path string, replay func(*record) error) (*ledger, error) {
	if path == "" {
		return &ledger{}, replay(nil)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the simulator's ledger: %w", err)
	}
	l := &ledger{file: f}
	if err := l.load(replay); err != nil {
		return nil, errors.Join(fmt.Errorf("%s at byte %d: %w", path, l.size, err), f.Close())
	}
	return l, nil
}

func (l *ledger) load(replay func(*record) error) error {
	in := bufio.NewReaderSize(l.file, maxLineBytes)
	for {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			return fmt.Errorf("%w: a line is too long", ErrLedger)
		}
		if err != nil {
			return err
		}
		var r record
		if err := json.Unmarshal(bytes.TrimSuffix(line, []byte("\n")), &r); err != nil {
			return fmt.Errorf("%w: %w", ErrLedger, err)
		}
		if err := replay(&r); err != nil {
			return fmt.Errorf("%w: %w", ErrLedger, err)
		}
		l.size += int64(len(line))
	}
	if err := l.file.Truncate(l.size); err != nil {
		return err
	}
	return replay(nil)
}

func (l *ledger) write(r record) error {
	if l.err != nil || l.file == nil {
		return l.err
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	if _, err := l.file.Write(line); err != nil {
		// Half a line must not become the beginning of the next one.
		if terr := l.file.Truncate(l.size); terr != nil {
			l.err = errors.Join(err, terr)
		}
		return err
	}
	l.size += int64(len(line))
	return nil
}

func (l *ledger) close() error {
	if l.err == nil {
		l.err = os.ErrClosed
	}
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}
