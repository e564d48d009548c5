package simhost

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"strconv"
	"strings"
)

// readSeed does what a guest does with a NoCloud seed when it boots: it looks for
// a disk with the label cidata and takes the proxy's port and credentials from
// the file /etc/proxy.env that its user-data has it write. A guest without a seed
// keeps what it had.
func (d *Domain) readSeed() {
	if !d.defined {
		return
	}
	for _, k := range d.disks {
		v := d.h.diskVolume(k)
		if v == nil {
			continue
		}
		user, ok := isoFile(v.content, "cidata", "user-data")
		if !ok {
			continue
		}
		env := writeFiles(string(user))["/etc/proxy.env"]
		for line := range strings.Lines(env) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			switch key {
			case "PROXY_PORT":
				if n, err := strconv.ParseUint(value, 10, 16); err == nil {
					d.spec.Port = int(n)
				}
			case "PROXY_AUTH":
				d.proxy.User, d.proxy.Password, _ = strings.Cut(value, ":")
			}
		}
	}
}

const sector = 2048

// isoFile reads a file of the root directory of an ISO 9660 image with this label,
// under the name that Linux gives it: without its version, in lower case.
func isoFile(img []byte, label, name string) ([]byte, bool) {
	at := func(off, n int) []byte {
		if off < 0 || n < 0 || off > len(img) || n > len(img)-off {
			return nil
		}
		return img[off : off+n]
	}
	pvd := at(16*sector, sector)
	if pvd == nil || pvd[0] != 1 || string(pvd[1:6]) != "CD001" || !strings.EqualFold(strings.TrimRight(string(pvd[40:72]), " \x00"), label) {
		return nil, false
	}
	extent := func(rec []byte) (off, n int) {
		return int(binary.LittleEndian.Uint32(rec[2:])) * sector, int(binary.LittleEndian.Uint32(rec[10:]))
	}
	dir := at(extent(pvd[156:190]))
	for len(dir) > 0 {
		n := int(dir[0])
		if n == 0 { // the next one is in the next sector
			skip := len(dir) % sector
			if skip == 0 {
				skip = sector
			}
			dir = dir[min(skip, len(dir)):]
			continue
		}
		if n < 34 || n > len(dir) || 33+int(dir[32]) > n {
			return nil, false
		}
		rec := dir[:n]
		id, _, _ := strings.Cut(string(rec[33:33+int(rec[32])]), ";")
		if strings.EqualFold(strings.TrimSuffix(id, "."), name) && rec[25]&2 == 0 {
			data := at(extent(rec))
			return data, data != nil
		}
		dir = dir[n:]
	}
	return nil, false
}

// writeFiles reads write_files of a cloud-config, as simply as a guest can: by
// lines and their indentation.
func writeFiles(user string) map[string]string {
	out := map[string]string{}
	lines := strings.Split(strings.ReplaceAll(user, "\r", ""), "\n")
	if strings.TrimSpace(lines[0]) != "#cloud-config" {
		return out
	}
	on := false
	var path, content, encoding string
	done := func() {
		if path != "" {
			if encoding == "b64" || encoding == "base64" {
				if b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(content)); err == nil {
					content = string(b)
				}
			}
			out[path] = content
		}
		path, content, encoding = "", "", ""
	}
	for i := 0; i < len(lines); i++ {
		l := lines[i]
		if l != "" && l[0] != ' ' && l[0] != '#' && l[0] != '-' {
			done()
			on = strings.HasPrefix(l, "write_files:")
			continue
		}
		text := strings.TrimLeft(l, " ")
		if !on || text == "" {
			continue
		}
		indent := len(l) - len(text)
		if strings.HasPrefix(text, "- ") {
			done()
			rest := strings.TrimLeft(text[2:], " ")
			indent += len(text) - len(rest)
			text = rest
		}
		key, value, _ := strings.Cut(text, ":")
		value = strings.Trim(strings.TrimSpace(value), `"'`)
		switch key {
		case "path":
			path = value
		case "encoding":
			encoding = value
		case "content":
			if !strings.HasPrefix(value, "|") {
				content = value
				continue
			}
			var block bytes.Buffer
			cut := -1
			for i+1 < len(lines) {
				next := lines[i+1]
				in := len(next) - len(strings.TrimLeft(next, " "))
				if strings.TrimSpace(next) != "" && in <= indent {
					break
				}
				if cut < 0 {
					cut = in
				}
				i++
				block.WriteString(next[min(cut, len(next)):] + "\n")
			}
			content = block.String()
		}
	}
	done()
	return out
}
