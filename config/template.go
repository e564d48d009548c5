package config

import "time"

// Template is what managed VMs are made of. Base or BaseFile is set, and Network
// or Bridge, never both. Texts of files are read by now.
type Template struct {
	// Name is unique among the templates.
	Name string `toml:"name"`
	// VCPUs of the VM.
	VCPUs int `toml:"vcpus"`
	// Memory of the VM.
	Memory Size `toml:"memory"`
	// Disk is the size of the VM's disk; 0: as large as its base.
	Disk Size `toml:"disk"`
	// Storage is the libvirt storage pool of base, disk and seed.
	Storage string `toml:"storage"`
	// Base is the name of a volume in Storage.
	Base string `toml:"base"`
	// BaseFile is a local image that is uploaded where Storage lacks it.
	BaseFile string `toml:"base_file"`
	// BaseSHA256 is the hash of BaseFile, in lower-case hex: as declared, and then
	// held against the file when it is uploaded, or found out by reading it.
	BaseSHA256 string `toml:"base_sha256"`
	// BaseSize is the length of BaseFile in bytes.
	BaseSize int64 `toml:"-"`
	// BaseFormat of Base or BaseFile.
	BaseFormat Format `toml:"base_format"`
	// Network is a libvirt network.
	Network string `toml:"network"`
	// Bridge is a bridge of the host.
	Bridge string `toml:"bridge"`
	// Machine is the libvirt machine type; empty: the host's default.
	Machine string `toml:"machine"`
	// Arch is the architecture; empty: x86_64.
	Arch string `toml:"arch"`
	// Type of virtualisation.
	Type VirtType `toml:"type"`
	// Firmware that the VM boots with.
	Firmware Firmware `toml:"firmware"`
	// UserData is cloud-init user-data that is merged with virdeck's own.
	UserData string `toml:"user_data"`
	// UserDataFile is where UserData was read from.
	UserDataFile string `toml:"user_data_file"`
	// XML holds raw elements of a <domain>, merged into what virdeck makes.
	XML string `toml:"xml"`
	// XMLFile is where XML was read from.
	XMLFile string `toml:"xml_file"`
}

// Format of an image.
type Format string

// The formats.
const (
	FormatQCOW2 Format = "qcow2"
	FormatRaw   Format = "raw"
)

// VirtType is how a VM runs.
type VirtType string

// The types.
const (
	VirtKVM  VirtType = "kvm"
	VirtQEMU VirtType = "qemu" // emulated: slow, and works everywhere
)

// Firmware of a VM.
type Firmware string

// The kinds of firmware.
const (
	FirmwareBIOS Firmware = "bios"
	FirmwareEFI  Firmware = "efi"
)

// Pool declares a number of managed proxies that are all alike, called
// NAME-1, NAME-2 and so on.
type Pool struct {
	// Name is unique among the pools.
	Name string `toml:"name"`
	// Template is the name of a [Template].
	Template string `toml:"template"`
	// Count is the number of members.
	Count int `toml:"count"`
	// Hosts are where members may be, the preferred first; never empty.
	Hosts []string `toml:"hosts"`
	// Port is where each member listens.
	Port int `toml:"port"`
	// Protocol is what it speaks.
	Protocol Protocol `toml:"protocol"`
	// Probe is how it is checked; empty: by the target's scheme.
	Probe Probe `toml:"probe"`
	// Surge is how many extra members there may be while others are replaced; 0:
	// they are replaced in place.
	Surge int `toml:"surge"`
	// MinAvailable is how many are left in rotation, at least, whatever is done.
	MinAvailable int `toml:"min_available"`
	// MaxAge of a member, after which it is replaced; 0: never.
	MaxAge time.Duration `toml:"max_age"`
	// DrainTime is how long, at most, a member finishes what is open before it is
	// removed.
	DrainTime time.Duration `toml:"drain_time"`
	// Failover has stand-ins made on other hosts.
	Failover bool `toml:"failover"`
	// FailoverAfter is how long a host has not answered by then.
	FailoverAfter time.Duration `toml:"failover_after"`
	// Labels of each member; nil if there are none.
	Labels map[string]string `toml:"labels"`
}

func defaultTemplate() Template {
	return Template{
		VCPUs: 1, Memory: 512, Storage: "default", BaseFormat: FormatQCOW2, Network: "default",
		Type: VirtKVM, Firmware: FirmwareBIOS,
	}
}

func defaultPool() Pool {
	return Pool{Protocol: ProtocolHTTP, Surge: 1, DrainTime: 30 * time.Second, FailoverAfter: 5 * time.Minute}
}
