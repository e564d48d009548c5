package libvirt

import (
	"virdeck/model"
	"virdeck/provider"
)

// Identity implements provider.Builder. It asks nobody.
func (h *Host) Identity(o model.Owner) provider.Built {
	id := identify(o)
	return provider.Built{Domain: id.domain, UUID: formatUUID(id.uuid), MAC: id.mac}
}
