package simhost

import (
	libvirt "github.com/digitalocean/go-libvirt"
)

// statusContinue is the status of a stream's packet with data in it, and of the
// empty one with which the daemon confirms a stream's end.
const statusContinue = 2

// upload is a stream of data into a volume, from the reply to its call to the
// client's finish or abort, or to an error.
type upload struct {
	v  *volume
	at uint64 // where the next byte goes
}

// volUpload opens a stream; the data follow in packets of their own. The length
// is not looked at, neither here nor at the end.
func volUpload(c *call, a *libvirt.StorageVolUploadArgs) (void, *Error) {
	return onVolume(c, a.Vol, func(v *volume) (void, *Error) {
		if v.uploads > 0 {
			return void{}, fail(fromStorage, libvirt.ErrOperationInvalid, "volume '%s' is still in use.", v.Name)
		}
		if _, here := c.conn.d.conns[c.conn]; !here {
			return void{}, nil // the client has gone, and its stream with it
		}
		v.uploads++
		c.conn.streams[c.serial] = &upload{v: v, at: a.Offset}
		return void{}, nil
	})
}

// stream takes one packet of a stream. Those of a stream that is not open, or no
// longer, are dropped: a client learns late that its stream has failed.
func (c *conn) stream(h header, data []byte) {
	host := c.d.h
	host.mu.Lock()
	defer host.mu.Unlock()
	u := c.streams[h.serial]
	if u == nil || Proc(h.proc) != ProcStorageVolUpload {
		return
	}
	if f := host.fault(ProcStorageVolUpload, "", true); f != nil && h.status == statusContinue {
		u.v.write(u.at, data[:len(data)/2])
		c.close()
		return
	}
	answer := header{prog: h.prog, vers: h.vers, proc: h.proc, typ: typeStream, serial: h.serial, status: statusContinue}
	switch h.status {
	case statusContinue:
		if u.v.write(u.at, data) {
			u.at += uint64(len(data))
			return
		}
		c.endStream(h.serial)
		c.send(outgoing{data: errorFrame(answer, fail(fromNone, libvirt.ErrSystemError, "cannot write to stream: No space left on device"))})
	case statusOK, statusError: // finished, or aborted: both are confirmed
		c.endStream(h.serial)
		c.send(outgoing{data: frame(answer, nil)})
	default:
		c.endStream(h.serial)
		c.send(outgoing{data: errorFrame(answer, fail(fromRPC, libvirt.ErrRPC, "stream aborted with unexpected status %d", h.status))})
	}
}

// endStream forgets a stream. The caller holds the host's mutex.
func (c *conn) endStream(serial uint32) {
	c.streams[serial].v.uploads--
	delete(c.streams, serial)
}

// chunk is how much of a volume goes into one packet of a download.
const chunk = 256 << 10

// volDownload answers, and then sends what the volume's file holds, as far as it
// is asked for; zero is to the end. An empty packet says that this was all.
func volDownload(c *call, a *libvirt.StorageVolDownloadArgs) (void, *Error) {
	return onVolume(c, a.Vol, func(v *volume) (void, *Error) {
		end := v.fileSize()
		if a.Length > 0 {
			end = min(end, a.Offset+a.Length)
		}
		head := header{prog: progRemote, vers: 1, proc: uint32(ProcStorageVolDownload), typ: typeStream, serial: c.serial, status: statusContinue}
		zeros := frame(head, make([]byte, chunk)) // one for all that was never written
		for at := a.Offset; at < end; {
			n := min(chunk, end-at)
			f := zeros
			if at < uint64(len(v.content)) || n < chunk {
				data := make([]byte, n)
				if at < uint64(len(v.content)) {
					copy(data, v.content[at:])
				}
				f = frame(head, data)
			}
			c.then = append(c.then, f)
			at += n
		}
		c.then = append(c.then, frame(head, nil))
		return void{}, nil
	})
}
