package ticket

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"

	"github.com/boombuler/barcode/qr"
)

const (
	quietModules = 4 // ISO/IEC 18004: readers may fail with a narrower margin
	// MaxQRSize bounds the side of a picture, in pixels.
	MaxQRSize = 2048
)

// ErrQRSize says that a picture of that size cannot be made: too small for a pixel a module, or over MaxQRSize.
var ErrQRSize = errors.New("no QR code of that size")

// QR draws a text as a PNG of size x size pixels, black on white, error correction level M (15 % of the symbol may be lost). All
// modules are equally large, whole pixels; what is left over widens the quiet zone.
func QR(text string, size int) ([]byte, error) {
	symbol, err := qr.Encode(text, qr.M, qr.Auto)
	if err != nil {
		return nil, fmt.Errorf("QR code of %d bytes: %w", len(text), err)
	}
	modules := symbol.Bounds().Dx()
	scale := size / (modules + 2*quietModules)
	if scale < 1 || size > MaxQRSize {
		return nil, fmt.Errorf("%w: %d pixels for %d modules", ErrQRSize, size, modules+2*quietModules)
	}
	// Two colours make PNG use one bit a pixel.
	picture := image.NewPaletted(image.Rect(0, 0, size, size), color.Palette{color.White, color.Black})
	margin := (size - scale*modules) / 2
	for y := range scale * modules {
		row := picture.Pix[(margin+y)*picture.Stride+margin:]
		for x := range scale * modules {
			if symbol.At(x/scale, y/scale) == color.Black {
				row[x] = 1
			}
		}
	}
	var out bytes.Buffer
	if err := png.Encode(&out, picture); err != nil {
		return nil, fmt.Errorf("QR code: %w", err)
	}
	return out.Bytes(), nil
}
