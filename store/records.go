package store

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"virdeck/model"
)

const (
	bucketMeta    = "meta"
	bucketHosts   = "hosts"
	bucketProxies = "proxies"
	bucketAdopted = "adopted"
	bucketBudget  = "budget"

	keyFormat     = "format"
	keySchema     = "schema"
	keyFleet      = "fleet"
	keyController = "controller"
	keySavedAt    = "saved_at"
	keySum        = "sum"

	format = "virdeck store"
	maxKey = 1024 // bytes; no name in a configuration comes near
)

func buckets() []string {
	return []string{bucketMeta, bucketHosts, bucketProxies, bucketAdopted, bucketBudget}
}

// recordNoun names a record in an error.
func recordNoun(bucket, key string) string {
	switch bucket {
	case bucketProxies:
		return "proxy " + key
	case bucketAdopted:
		return "adopted proxy " + key
	case bucketHosts:
		return "host " + key
	case bucketBudget:
		return "budget " + key
	}
	return bucket + " " + key
}

// records are the raw values by bucket and key.
type records map[string]map[string][]byte

func (rs records) put(bucket, key string, value []byte) {
	if rs[bucket] == nil {
		rs[bucket] = map[string][]byte{}
	}
	rs[bucket][key] = value
}

// tally is what meta/sum says of all other records.
type tally struct {
	Records int    `json:"records"`
	Sum     string `json:"sum"` // 16 hex digits
	sum     uint64
}

func (t *tally) add(bucket, key string, value []byte) {
	t.Records++
	t.sum += digest(bucket, key, value)
}

func (t *tally) remove(bucket, key string, value []byte) {
	t.Records--
	t.sum -= digest(bucket, key, value)
}

func (t *tally) encode() ([]byte, error) {
	t.Sum = fmt.Sprintf("%016x", t.sum)
	return encode(t)
}

func decodeTally(data []byte) (tally, error) {
	var t tally
	if err := decode(data, &t); err != nil {
		return t, err
	}
	raw, err := hex.DecodeString(t.Sum)
	if err != nil || len(raw) != 8 {
		return t, errors.New("not 16 hex digits")
	}
	t.sum = binary.BigEndian.Uint64(raw)
	return t, nil
}

func digest(bucket, key string, value []byte) uint64 {
	h := sha256.New()
	var n [8]byte
	for _, part := range [][]byte{[]byte(bucket), []byte(key), value} {
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		_, _ = h.Write(n[:]) // a hash never fails
		_, _ = h.Write(part)
	}
	return binary.BigEndian.Uint64(h.Sum(nil))
}

func (rs records) tally() tally {
	var t tally
	for bucket, kv := range rs {
		for key, value := range kv {
			if bucket != bucketMeta || key != keySum {
				t.add(bucket, key, value)
			}
		}
	}
	return t
}

// checkSum returns nil if the records are those that were written.
func (rs records) checkSum() error {
	said, err := decodeTally(rs[bucketMeta][keySum])
	if err != nil {
		return fmt.Errorf("meta sum: %w", err)
	}
	is := rs.tally()
	switch {
	case is.Records != said.Records:
		return fmt.Errorf("%d records where there should be %d", is.Records, said.Records)
	case is.sum != said.sum:
		return errors.New("a record is not what was written")
	}
	return nil
}

// state reads every record. Its errors name the first one that cannot be read.
func (rs records) state() (State, error) {
	if err := rs.checkSum(); err != nil {
		return State{}, err
	}
	s := State{
		Hosts:   map[model.HostName]string{},
		Proxies: map[model.ProxyName]Proxy{},
		Adopted: map[model.ProxyName]Adopted{},
		Budget:  map[BudgetKey][]time.Time{},
	}
	for bucket, kv := range rs {
		for key, value := range kv {
			if err := s.read(bucket, key, value); err != nil {
				return State{}, fmt.Errorf("%s: %w", recordNoun(bucket, key), err)
			}
		}
	}
	return s, nil
}

func (s *State) read(bucket, key string, value []byte) error {
	switch bucket {
	case bucketMeta:
		return s.readMeta(key, value)
	case bucketHosts:
		var uuid string
		if err := decode(value, &uuid); err != nil {
			return err
		}
		s.Hosts[model.HostName(key)] = uuid
	case bucketProxies:
		var w wireProxy
		if err := decode(value, &w); err != nil {
			return err
		}
		p, err := w.proxy(key)
		if err != nil {
			return err
		}
		s.Proxies[p.Name] = p
	case bucketAdopted:
		var w wireAdopted
		if err := decode(value, &w); err != nil {
			return err
		}
		a, err := w.adopted(key)
		if err != nil {
			return err
		}
		s.Adopted[a.Name] = a
	case bucketBudget:
		var at []time.Time
		if err := decode(value, &at); err != nil {
			return err
		}
		s.Budget[BudgetKey(key)] = at
	default:
		return errors.New("a kind of record that is not known")
	}
	return nil
}

func (s *State) readMeta(key string, value []byte) error {
	switch key {
	case keyFormat, keySum: // looked at elsewhere
		return nil
	case keySchema:
		return decode(value, &s.Schema)
	case keyFleet:
		return decode(value, &s.Fleet)
	case keyController:
		return decode(value, &s.Controller)
	case keySavedAt:
		return decode(value, &s.SavedAt)
	}
	return errors.New("not known")
}

// fresh returns the records of a new store.
func fresh(fleet, controller string) (records, error) {
	rs := records{}
	for key, v := range map[string]any{keyFormat: format, keySchema: Schema, keyFleet: fleet, keyController: controller} {
		value, err := encode(v)
		if err != nil {
			return nil, fmt.Errorf("meta %s: %w", key, err)
		}
		rs.put(bucketMeta, key, value)
	}
	t := rs.tally()
	sum, err := t.encode()
	if err != nil {
		return nil, fmt.Errorf("meta sum: %w", err)
	}
	rs.put(bucketMeta, keySum, sum)
	return rs, nil
}
