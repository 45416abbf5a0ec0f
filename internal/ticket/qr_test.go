package ticket_test

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os/exec"
	"strings"
	"testing"

	"github.com/boombuler/barcode/qr"

	"github.com/holdfast-project/holdfast/internal/ticket"
)

func picture(t *testing.T, text string, size int) (image.Image, []byte) {
	t.Helper()
	raw, err := ticket.QR(text, size)
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return img, raw
}

func dark(img image.Image, x, y int) bool {
	return color.GrayModel.Convert(img.At(x, y)).(color.Gray).Y < 128
}

func TestQRShowsEveryModuleInsideAQuietZone(t *testing.T) {
	t.Parallel()
	code := sign(t, claims())
	symbol, err := qr.Encode(code, qr.M, qr.AlphaNumeric)
	if err != nil {
		t.Fatal(err)
	}
	modules := symbol.Bounds().Dx()
	if modules != 45 {
		t.Errorf("%d modules, want 45 (version 7)", modules)
	}
	for _, size := range []int{modules + 8, 300, 401, ticket.MaxQRSize} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			img, _ := picture(t, code, size)
			if img.Bounds() != image.Rect(0, 0, size, size) {
				t.Fatalf("bounds %v", img.Bounds())
			}
			scale := size / (modules + 8)
			margin := (size - scale*modules) / 2
			if margin < 4*scale {
				t.Errorf("quiet zone of %d pixels at %d pixels a module", margin, scale)
			}
			for y := range size {
				for x := range size {
					mx, my := (x-margin)/scale, (y-margin)/scale
					inside := x >= margin && y >= margin && mx < modules && my < modules
					if want := inside && symbol.At(mx, my) == color.Black; dark(img, x, y) != want {
						t.Fatalf("pixel %d,%d dark: %v, want %v", x, y, !want, want)
					}
				}
			}
		})
	}
}

func TestQRRefusesImpossibleSizes(t *testing.T) {
	t.Parallel()
	code := sign(t, claims())
	for _, size := range []int{-1, 0, 45 + 7, ticket.MaxQRSize + 1} {
		if _, err := ticket.QR(code, size); !errors.Is(err, ticket.ErrQRSize) {
			t.Errorf("%d pixels: %v", size, err)
		}
	}
	if _, err := ticket.QR(strings.Repeat("x", 5000), 2048); err == nil {
		t.Error("5,000 bytes fit into no QR code")
	}
}

// A second implementation must be able to read what ours draws.
func TestQRIsReadByAnotherProgram(t *testing.T) {
	t.Parallel()
	zbarimg, err := exec.LookPath("zbarimg")
	if err != nil {
		t.Skip("zbarimg is not installed (Debian: zbar-tools)")
	}
	code := sign(t, claims())
	for _, size := range []int{120, 300, 1000} {
		_, raw := picture(t, code, size)
		cmd := exec.CommandContext(t.Context(), zbarimg, "--raw", "--quiet", "-")
		cmd.Stdin = bytes.NewReader(raw)
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("%d pixels: %v", size, err)
		}
		if got := strings.TrimSuffix(string(out), "\n"); got != code {
			t.Errorf("%d pixels: read %q, want %q", size, got, code)
		}
	}
}

func BenchmarkQR(b *testing.B) {
	code, err := ticket.Sign(private, claims())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := ticket.QR(code, 300); err != nil {
			b.Fatal(err)
		}
	}
}
