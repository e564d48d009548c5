package config

import (
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"virdeck/model"
)

// maxText bounds user-data and XML of a template.
const maxText = 256 << 10

func (k *checker) templates() {
	names := map[string]keyPath{}
	k.isTemplate = make(map[string]bool, len(k.c.Templates))
	for i := range k.c.Templates {
		k.templateNames = append(k.templateNames, k.c.Templates[i].Name)
		k.isTemplate[k.c.Templates[i].Name] = true
		if at := section("template", index(i)); !k.blamed[at.id()] {
			k.oneTemplate(at, &k.c.Templates[i], names)
			k.texts(at, &k.c.Templates[i])
		}
	}
}

// texts notes what the caller's own check of user-data and XML says, in the words
// of who writes them, with the line of the key and that in the text.
func (k *checker) texts(at keyPath, t *Template) {
	if k.src.CheckTexts == nil {
		return
	}
	for _, p := range k.src.CheckTexts(t.Model()) {
		text, file := t.UserData, t.UserDataFile
		if p.Setting == "xml" {
			text, file = t.XML, t.XMLFile
		}
		where, whole := at.with(p.Setting), "it"
		if !k.has(where) {
			where, whole = at.with(p.Setting+"_file"), oneLine(file)
		}
		if k.blamed[where.id()] {
			continue
		}
		place := ""
		if p.Line > 0 && strings.Contains(strings.TrimSpace(text), "\n") {
			place = fmt.Sprintf("line %d of %s: ", p.Line, whole)
		}
		k.problems = append(k.problems, k.at(where, "%s%s", place, oneLine(p.Msg)))
	}
}

func (k *checker) oneTemplate(at keyPath, t *Template, names map[string]keyPath) {
	k.unique(at, t.Name, names)
	k.number(at.with("vcpus"), t.VCPUs, 1, 512)
	k.sized(at.with("memory"), t.Memory, 64, 16<<20)
	const smallest, largest = Size(64), Size(64 << 20) // no image that boots is smaller
	if k.has(at.with("disk")) && (t.Disk < smallest || t.Disk > largest) {
		k.problem(at.with("disk"), "%s is out of range; allowed: %s to %s, or no disk setting for as large as the base", t.Disk, smallest, largest)
	}
	k.word(at, "storage", t.Storage, "the name of a libvirt storage pool")
	switch {
	case !k.has(at.with("bridge")):
		k.word(at, "network", t.Network, "the name of a libvirt network")
	case k.has(at.with("network")):
		k.problem(at.with("bridge"), "given with network; allowed: one of network and bridge")
	default:
		k.word(at, "bridge", t.Bridge, "the name of a bridge of the host")
		t.Network = ""
	}
	if k.has(at.with("machine")) {
		k.word(at, "machine", t.Machine, "a machine type such as \"q35\"")
	}
	oneOf(k, at.with("type"), t.Type, VirtKVM, VirtQEMU)
	oneOf(k, at.with("firmware"), t.Firmware, FirmwareBIOS, FirmwareEFI)
	if k.has(at.with("arch")) {
		k.arch(at, t)
	}
	if oneOf(k, at.with("base_format"), t.BaseFormat, FormatQCOW2, FormatRaw) {
		k.base(at, t)
	}
	k.content(at, "user_data", &t.UserData, &t.UserDataFile)
	k.content(at, "xml", &t.XML, &t.XMLFile)
}

// arch checks the architecture, and that its machines can boot. What they boot may
// also be in the raw XML.
func (k *checker) arch(at keyPath, t *Template) {
	raw := k.has(at.with("xml")) || k.has(at.with("xml_file"))
	if !oneOf(k, at.with("arch"), t.Arch, model.Arches()...) || raw || model.Firmware(t.Firmware).Boots(t.Arch) {
		return
	}
	other := FirmwareEFI
	if t.Firmware == other {
		other = FirmwareBIOS
	}
	k.problem(at.with("arch"), "no %s machine boots a disk with firmware %q; allowed: firmware = %q", t.Arch, string(t.Firmware), string(other))
}

func (k *checker) sized(at keyPath, v, low, high Size) {
	if v < low || v > high {
		k.problem(at, "%s is out of range; allowed: %s to %s", v, low, high)
	}
}

// word checks a name that goes into libvirt's XML and on its command lines.
func (k *checker) word(at keyPath, key, v, allowed string) {
	switch where := at.with(key); {
	case v == "":
		k.missing(at, key, allowed)
	case strings.ContainsAny(v, "/ \t") || v[0] == '-' || v[0] == '.':
		k.problem(where, "%q is not a name; allowed: %s, without slash or space", v, allowed)
	default:
		k.text(where, v)
	}
}

// base checks where the disk of a VM comes from.
func (k *checker) base(at keyPath, t *Template) {
	const either = "base (a volume in the storage pool) or base_file (a local image)"
	switch {
	case !k.has(at.with("base")) && !k.has(at.with("base_file")):
		k.problem(at, "neither base nor base_file; allowed: %s", either)
	case k.has(at.with("base")) && k.has(at.with("base_file")):
		k.problem(at.with("base_file"), "given with base; allowed: %s", either)
	case k.has(at.with("base")):
		k.word(at, "base", t.Base, "the name of a volume in the storage pool")
		if k.has(at.with("base_sha256")) {
			k.problem(at.with("base_sha256"), "given with base; allowed: with base_file alone")
		}
	case t.BaseFile == "":
		k.missing(at, "base_file", "the path of an image")
	default:
		k.baseFile(at, t)
	}
}

func (k *checker) baseFile(at keyPath, t *Template) {
	t.BaseFile = k.src.resolve(t.BaseFile)
	if where := at.with("base_sha256"); k.has(where) {
		t.BaseSHA256 = strings.ToLower(t.BaseSHA256)
		if b, err := hex.DecodeString(t.BaseSHA256); err != nil || len(b) != 32 {
			k.problem(where, "%q is not a SHA-256; allowed: 64 hex digits, or no base_sha256 setting", t.BaseSHA256)
			return
		}
	}
	im, err := k.src.image(t.BaseFile, t.BaseFormat, t.BaseSHA256)
	if err != nil {
		k.problem(at.with("base_file"), "%s %v", oneLine(t.BaseFile), err)
		return
	}
	t.BaseSize, t.BaseSHA256 = im.size, im.sha256
	if t.Disk != 0 && int64(t.Disk)<<20 < im.virtual {
		k.problem(at.with("disk"), "%s is less than the disk in base_file, %s; allowed: at least that, or no disk setting for the same", t.Disk, Size((im.virtual+1<<20-1)>>20))
	}
}

// content checks a text that stands in the file or in one of its own, and reads it.
func (k *checker) content(at keyPath, key string, text, file *string) {
	where := at.with(key)
	if fromFile := at.with(key + "_file"); k.has(fromFile) {
		if k.has(where) {
			k.problem(fromFile, "given with %[1]s; allowed: one of %[1]s and %[1]s_file", key)
			return
		}
		if *file == "" {
			k.missing(at, key+"_file", "the path of a file")
			return
		}
		where, *file = fromFile, k.src.resolve(*file)
		data, err := k.src.textFile(*file)
		if err != nil {
			k.problem(where, "%v", err)
			return
		}
		*text = data
	}
	switch {
	case len(*text) > maxText:
		k.problem(where, "%d bytes long; allowed: at most %d", len(*text), maxText)
	case !utf8.ValidString(*text) || strings.ContainsFunc(*text, func(r rune) bool { return control(r) && r != '\n' && r != '\r' && r != '\t' }):
		k.problem(where, "holds a control character; allowed: plain text")
	}
}

// textFile reads a file of user-data or XML.
func (s *Sources) textFile(path string) (string, error) {
	shown := oneLine(path)
	if s.Open == nil {
		return "", fmt.Errorf("%s cannot be read here", shown)
	}
	data, _, err := readFile(s.Open, path, maxText)
	if err != nil {
		return "", fmt.Errorf("%s cannot be read: %w; allowed: a text file", shown, err)
	}
	return string(data), nil
}
