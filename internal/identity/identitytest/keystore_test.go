package identitytest_test

import (
	"testing"

	"github.com/holdfast-project/holdfast/internal/identity"
	"github.com/holdfast-project/holdfast/internal/identity/identitytest"
)

func TestMemoryKeys(t *testing.T) {
	t.Parallel()
	identitytest.KeyStore(t, func(*testing.T) identity.KeyStore { return new(identity.MemoryKeys) })
}
