package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"
	"unicode/utf8"

	"virdeck/model"
)

// The wire types are the schema: a name in the model may change, one here may
// not without a migration.

type wireProxy struct {
	UID         string      `json:"uid"`
	CreatedAt   time.Time   `json:"created_at"`
	Backing     string      `json:"backing"`
	Host        string      `json:"host"`
	Pool        string      `json:"pool,omitempty"`
	Template    string      `json:"template,omitempty"`
	SpecHash    string      `json:"spec_hash,omitempty"`
	Port        uint16      `json:"port,omitempty"`
	Domain      string      `json:"domain,omitempty"`
	UUID        string      `json:"uuid,omitempty"`
	MAC         string      `json:"mac,omitempty"`
	IP          netip.Addr  `json:"ip"`
	Incarnation string      `json:"incarnation,omitempty"`
	InRotation  bool        `json:"in_rotation,omitempty"`
	Drained     bool        `json:"drained,omitempty"`
	Released    bool        `json:"released,omitempty"`
	Wish        Wish        `json:"wish"`
	User        string      `json:"user,omitempty"`
	Password    string      `json:"password,omitempty"`
	Events      []wireEvent `json:"events,omitempty"`
}

type wireEvent struct {
	Seq      uint64    `json:"seq"`
	At       time.Time `json:"at"`
	Host     string    `json:"host,omitempty"`
	Proxy    string    `json:"proxy,omitempty"`
	From     string    `json:"from,omitempty"`
	To       string    `json:"to,omitempty"`
	What     string    `json:"what"`
	Evidence []string  `json:"evidence,omitempty"`
}

type wireAdopted struct {
	Host     string            `json:"host"`
	Domain   string            `json:"domain"`
	Port     uint16            `json:"port"`
	Probe    string            `json:"probe"`
	Pool     string            `json:"pool,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	User     string            `json:"user,omitempty"`
	Password string            `json:"password,omitempty"`
}

// check refuses what would not be read back as it was given: JSON would put
// another character in the place of bytes that are not UTF-8. In the text of an
// event, which may be a host's, that is welcome; elsewhere it would be another
// password, or another domain.
func (w wireProxy) check() error {
	if !w.Wish.Known() {
		return fmt.Errorf("wish %q is not known", w.Wish)
	}
	if _, err := parseBacking(w.Backing); err != nil {
		return err
	}
	return allUTF8(w.UID, w.Host, w.Pool, w.Template, w.SpecHash, w.Domain, w.UUID, w.MAC, w.Incarnation, w.User, w.Password)
}

func (w wireAdopted) check() error {
	if _, err := parseProbe(w.Probe); err != nil {
		return err
	}
	for k, v := range w.Labels {
		if err := allUTF8(k, v); err != nil {
			return err
		}
	}
	return allUTF8(w.Host, w.Domain, w.Pool, w.User, w.Password)
}

func (p Proxy) wire() wireProxy {
	w := wireProxy{
		UID: p.UID, CreatedAt: p.CreatedAt.UTC(), Backing: p.Backing.String(), Host: string(p.Host), Pool: p.Pool,
		Template: p.Template, SpecHash: p.SpecHash, Port: p.Port, Domain: p.Domain, UUID: p.UUID, MAC: p.MAC, IP: p.IP,
		Incarnation: string(p.Incarnation), InRotation: p.InRotation, Drained: p.Drained, Released: p.Released,
		Wish: p.Wish, User: p.Creds.User, Password: p.Creds.Password,
	}
	if w.Wish == "" {
		w.Wish = WishPresent
	}
	for _, e := range p.Events[max(0, len(p.Events)-MaxEvents):] {
		w.Events = append(w.Events, wireEvent{
			Seq: e.Seq, At: e.At.UTC(), Host: string(e.Host), Proxy: string(e.Proxy),
			From: e.From, To: e.To, What: e.What, Evidence: e.Evidence,
		})
	}
	return w
}

func (w wireProxy) proxy(name string) (Proxy, error) {
	backing, err := parseBacking(w.Backing)
	if err != nil {
		return Proxy{}, err
	}
	if !w.Wish.Known() {
		return Proxy{}, fmt.Errorf("wish %q is not known", w.Wish)
	}
	p := Proxy{
		Name: model.ProxyName(name), UID: w.UID, CreatedAt: w.CreatedAt, Backing: backing, Host: model.HostName(w.Host),
		Pool: w.Pool, Template: w.Template, SpecHash: w.SpecHash, Port: w.Port, Domain: w.Domain, UUID: w.UUID, MAC: w.MAC, IP: w.IP,
		Incarnation: model.Incarnation(w.Incarnation), InRotation: w.InRotation, Drained: w.Drained, Released: w.Released,
		Wish: w.Wish, Creds: model.Credentials{User: w.User, Password: w.Password},
	}
	for _, e := range w.Events {
		p.Events = append(p.Events, model.Event{
			Seq: e.Seq, At: e.At, Host: model.HostName(e.Host), Proxy: model.ProxyName(e.Proxy),
			From: e.From, To: e.To, What: e.What, Evidence: e.Evidence,
		})
	}
	return p, nil
}

func (a Adopted) wire() wireAdopted {
	return wireAdopted{
		Host: string(a.Host), Domain: a.Domain, Port: a.Port, Probe: a.Probe.String(), Pool: a.Pool,
		Labels: a.Labels, User: a.Creds.User, Password: a.Creds.Password,
	}
}

func (w wireAdopted) adopted(name string) (Adopted, error) {
	probe, err := parseProbe(w.Probe)
	return Adopted{
		Name: model.ProxyName(name), Host: model.HostName(w.Host), Domain: w.Domain, Port: w.Port, Probe: probe,
		Pool: w.Pool, Labels: w.Labels, Creds: model.Credentials{User: w.User, Password: w.Password},
	}, err
}

func parseBacking(word string) (model.Backing, error) {
	for _, b := range []model.Backing{model.BackingAdopted, model.BackingManaged, model.BackingExternal} {
		if b.String() == word {
			return b, nil
		}
	}
	return 0, fmt.Errorf("backing %q is not known", word)
}

func parseProbe(word string) (model.ProbeKind, error) {
	for _, k := range []model.ProbeKind{model.ProbeHTTP, model.ProbeConnect} {
		if k.String() == word {
			return k, nil
		}
	}
	return 0, fmt.Errorf("probe %q is not known", word)
}

func encode(v any) ([]byte, error) {
	if c, ok := v.(interface{ check() error }); ok {
		if err := c.check(); err != nil {
			return nil, err
		}
	} else if s, ok := v.(string); ok {
		if err := allUTF8(s); err != nil {
			return nil, err
		}
	}
	return json.Marshal(v)
}

// decode is strict: what it does not know would be lost with the next write.
func decode(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON value")
	}
	return nil
}

func allUTF8(texts ...string) error {
	for _, t := range texts {
		if !utf8.ValidString(t) {
			return errors.New("text is not UTF-8") // which text is not said: it may be the password
		}
	}
	return nil
}

func utcAll(at []time.Time) []time.Time {
	out := make([]time.Time, len(at))
	for i, t := range at {
		out[i] = t.UTC()
	}
	return out
}
