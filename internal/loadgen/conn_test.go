package loadgen

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// served dials a test server.
func served(t *testing.T, h http.Handler) *conn {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c, err := dial(t.Context(), s.Listener.Addr().String(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestEveryKindOfAnswerIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("seat ", 20_000)
	c := served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/short":
			fmt.Fprint(w, "short")
		case "/empty":
			w.WriteHeader(http.StatusCreated)
		case "/none":
			w.WriteHeader(http.StatusNoContent)
		case "/same":
			w.WriteHeader(http.StatusNotModified)
		case "/refused":
			w.Header().Set("Content-Encoding", "gzip")
			http.Error(w, "gone", http.StatusConflict)
		case "/chunks":
			for part := range strings.SplitSeq(long, "s") {
				_, _ = io.WriteString(w, part+"s")
				if len(part) == 3 {
					w.(http.Flusher).Flush()
				}
			}
			w.Header().Set(http.TrailerPrefix+"X-After", "yes")
		case "/long":
			w.Header().Set("Content-Length", fmt.Sprint(len(long)))
			_, _ = io.WriteString(w, long)
		case "/last":
			w.Header().Set("Connection", "close")
			fmt.Fprint(w, "bye")
		}
	}))
	for _, want := range []struct {
		path   string
		status int
		body   string
	}{
		{"/short", 200, "short"}, {"/chunks", 200, long + "s"}, {"/none", 204, ""}, {"/long", 200, long}, {"/same", 304, ""}, {"/empty", 201, ""},
		{"/refused", 409, "gone\n"}, {"/last", 200, "bye"}, {"/short", 200, "short"}, {"/last", 200, "bye"}, {"/chunks", 200, long + "s"},
	} {
		a, err := c.do(t.Context(), get(want.path, ""))
		if err != nil {
			t.Fatalf("%s: %v", want.path, err)
		}
		if a.status != want.status || string(a.body) != want.body || a.gzip != (want.path == "/refused") {
			t.Errorf("%s: %d with %d bytes (gzip %v), not %d with %d", want.path, a.status, len(a.body), a.gzip, want.status, len(want.body))
		}
	}
}

func TestWhatIsNoAnswerIsAnError(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"nothing":          "",
		"another protocol": "SSH-2.0-OpenSSH_9.9\r\n\r\n",
		"no status":        "HTTP/1.1 abc OK\r\n\r\n",
		"no length":        "HTTP/1.1 200 OK\r\n\r\nbody",
		"negative length":  "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"huge length":      "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
		"short body":       "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbody",
		"no header":        "HTTP/1.1 200 OK\r\nwhat\r\n\r\n",
		"bad chunk":        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"chunk without end": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabcd\r\n" +
			"0\r\n\r\n",
		"too many lines": "HTTP/1.1 200 OK\r\n" + strings.Repeat("A: b\r\n", maxLines+1) + "\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				socket, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = socket.Read(make([]byte, 1024))
				_, _ = io.WriteString(socket, text)
				_ = socket.Close()
			}()
			c, err := dial(t.Context(), l.Addr().String(), time.Now)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if a, err := c.do(t.Context(), get("/", "")); err == nil {
				t.Errorf("read as %d %q", a.status, a.body)
			} else if !errors.Is(err, errAnswer) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("unexpected error: %v", err)
			}
		})
	}
}
