package libvirt

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	golibvirt "github.com/digitalocean/go-libvirt"
	guuid "github.com/google/uuid"

	"virdeck/model"
)

// identity is everything about a managed VM that must be the same each time it
// is asked for: two runs of a Create, or two processes, mean the same VM. UUID
// and MAC follow from fleet and uid, so that a proxy that is made anew under the
// same name cannot inherit an address of the one before it.
type identity struct {
	uuid    golibvirt.UUID
	domain  string
	mac     string // lower case, with colons
	overlay string // volume names
	seed    string
}

// namespace is virdeck's, for UUIDv5.
var namespace = guuid.UUID{0x6f, 0x1c, 0x1d, 0x0b, 0x8c, 0x44, 0x4e, 0x0e, 0x9d, 0x0f, 0x5a, 0x1f, 0x3c, 0x55, 0x21, 0x07}

func identify(o model.Owner) identity {
	key := o.Fleet + "\x00" + o.UID
	id := identity{uuid: uuidV5(key), mac: macOf(key)}
	id.domain = model.DomainName(o.Fleet, o.Proxy, nameTail(o))
	id.overlay, id.seed = volumeNames(id.domain)
	return id
}

func volumeNames(domain string) (overlay, seed string) {
	return domain + ".qcow2", domain + "-seed.iso"
}

// nameTail is the end of the name of every domain that was made for a uid.
func nameTail(o model.Owner) string {
	sum := sha256.Sum256([]byte("name\x00" + o.Fleet + "\x00" + o.UID))
	return "-" + hex.EncodeToString(sum[:3])
}

func uuidV5(name string) golibvirt.UUID {
	return golibvirt.UUID(guuid.NewSHA1(namespace, []byte(name)))
}

// macOf is in the range that QEMU uses, as every tool expects of a guest.
func macOf(key string) string {
	s := sha256.Sum256([]byte("mac\x00" + key))
	return fmt.Sprintf("52:54:00:%02x:%02x:%02x", s[0], s[1], s[2])
}
