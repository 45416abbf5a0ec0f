package loadgen

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// Limits of a connection.
const (
	maxAnswer      = 64 << 20 // bytes of a body
	maxLines       = 100      // header lines of an answer
	answerTimeout  = 30 * time.Second
	connectTimeout = 10 * time.Second
)

// errAnswer says that what came is not an HTTP/1.1 answer that a net/http server gives.
var errAnswer = errors.New("not an answer that can be read")

// conn is one kept-alive HTTP/1.1 connection. It reads of an answer what the scenarios look at and nothing else: net/http's client costs several times as
// much, on the same cores that the server needs.
type conn struct {
	addr  string
	now   func() time.Time
	c     net.Conn
	r     *bufio.Reader
	body  []byte
	close bool        // the server said that it will
	quiet func() bool // ends watching the context
}

// answer is valid until the connection's next call.
type answer struct {
	status int
	body   []byte
	gzip   bool
}

// dial connects; the connection is cut when ctx ends, which also ends a call that waits.
func dial(ctx context.Context, addr string, now func() time.Time) (*conn, error) {
	c := &conn{addr: addr, now: now}
	return c, c.connect(ctx)
}

func (c *conn) connect(ctx context.Context) error {
	d := net.Dialer{Timeout: connectTimeout}
	socket, err := d.DialContext(ctx, "tcp", c.addr)
	if err != nil {
		return err
	}
	c.quiet = context.AfterFunc(ctx, func() { _ = socket.SetDeadline(time.Unix(1, 0)) }) // in the past: what waits for the socket stops
	c.c, c.close = socket, false
	if c.r == nil {
		c.r = bufio.NewReaderSize(socket, 16<<10)
	} else {
		c.r.Reset(socket)
	}
	return nil
}

// Close gives the connection back.
func (c *conn) Close() error {
	if c.c == nil {
		return nil
	}
	c.quiet()
	err := c.c.Close()
	c.c = nil
	return err
}

// do sends a request as it is and reads the whole answer. A connection that the server announced to close is made again first; nothing is ever repeated.
func (c *conn) do(ctx context.Context, request []byte) (answer, error) {
	if c.close || c.c == nil {
		_ = c.Close()
		if err := c.connect(ctx); err != nil {
			return answer{}, err
		}
	}
	if err := ctx.Err(); err != nil {
		return answer{}, err
	}
	err := c.c.SetDeadline(c.now().Add(answerTimeout))
	if err == nil {
		_, err = c.c.Write(request)
	}
	var a answer
	if err == nil {
		a, err = c.read()
	}
	if err != nil {
		_ = c.Close()
		if ctx.Err() != nil {
			return answer{}, ctx.Err()
		}
	}
	return a, err
}

func (c *conn) read() (answer, error) {
	line, err := c.line()
	if err != nil {
		return answer{}, err
	}
	if len(line) < len("HTTP/1.1 200") || !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
		return answer{}, fmt.Errorf("%w: %q", errAnswer, line)
	}
	a := answer{}
	if a.status, err = strconv.Atoi(string(line[9:12])); err != nil || a.status < 200 {
		return answer{}, fmt.Errorf("%w: %q", errAnswer, line)
	}
	length, chunked := int64(-1), false
	for n := 0; ; n++ {
		if line, err = c.line(); err != nil {
			return answer{}, err
		}
		if len(line) == 0 {
			break
		}
		name, value, ok := bytes.Cut(line, []byte{':'})
		if !ok || n >= maxLines {
			return answer{}, fmt.Errorf("%w: header line %q", errAnswer, line)
		}
		value = bytes.TrimSpace(value)
		switch {
		case is(name, "Content-Length"):
			if length, err = strconv.ParseInt(string(value), 10, 64); err != nil || length < 0 || length > maxAnswer {
				return answer{}, fmt.Errorf("%w: length %q", errAnswer, value)
			}
		case is(name, "Transfer-Encoding"):
			chunked = is(value, "chunked")
		case is(name, "Content-Encoding"):
			a.gzip = is(value, "gzip")
		case is(name, "Connection"):
			c.close = is(value, "close")
		}
	}
	c.body = c.body[:0]
	switch {
	case a.status == 204 || a.status == 304:
	case chunked:
		err = c.chunks()
	case length < 0:
		err = fmt.Errorf("%w: no length", errAnswer)
	default:
		err = c.take(length)
	}
	a.body = c.body
	return a, err
}

func is(text []byte, name string) bool { return bytes.EqualFold(text, []byte(name)) }

// line reads one, without its end.
func (c *conn) line() ([]byte, error) {
	line, err := c.r.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(line[:len(line)-1], []byte{'\r'}), nil
}

func (c *conn) take(n int64) error {
	if int64(len(c.body))+n > maxAnswer {
		return fmt.Errorf("%w: over %d bytes", errAnswer, maxAnswer)
	}
	at := len(c.body)
	if need := at + int(n); need > cap(c.body) {
		c.body = append(make([]byte, 0, max(need, 2*cap(c.body))), c.body...)
	}
	c.body = c.body[:at+int(n)]
	_, err := io.ReadFull(c.r, c.body[at:])
	return err
}

// chunks reads a body of chunks (RFC 9112 section 7.1) to its end, trailers included.
func (c *conn) chunks() error {
	for {
		line, err := c.line()
		if err != nil {
			return err
		}
		size, _, _ := bytes.Cut(line, []byte{';'})
		n, err := strconv.ParseInt(string(size), 16, 64)
		if err != nil || n < 0 {
			return fmt.Errorf("%w: chunk %q", errAnswer, line)
		}
		if n > 0 {
			if err := c.take(n); err != nil {
				return err
			}
		}
		for lines := 0; ; lines++ { // after a chunk: one empty line; after the last: trailers, then an empty line
			if line, err = c.line(); err != nil {
				return err
			}
			if len(line) == 0 {
				break
			}
			if n > 0 || lines >= maxLines {
				return fmt.Errorf("%w: %q after a chunk", errAnswer, line)
			}
		}
		if n == 0 {
			return nil
		}
	}
}
