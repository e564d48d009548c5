package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"virdeck/model"
)

func TestChange_neverPrintsItsValue(t *testing.T) {
	const secret = "hunter2hunter2"
	creds := model.Credentials{User: "u", Password: secret}
	p, a := Proxy{Name: "p-01", Creds: creds}, Adopted{Name: "a-01", Creds: creds}
	changes := []Change{PutProxy(p), PutAdopted(a), DeleteProxy("p-02"), PutProxy(Proxy{Name: "bad", Wish: "no", Creds: creds})}
	var out bytes.Buffer
	for _, v := range []any{changes, changes[0], &changes[0], p, a, State{Proxies: map[model.ProxyName]Proxy{"p": p}}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(text)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "v", v)
		slog.New(slog.NewTextHandler(&out, nil)).Info("x", "v", v)
	}
	fmt.Fprintf(&out, "%d %d %c %08b\n", changes, &changes[0], changes, changes)
	bits := strings.Trim(fmt.Sprintf("%08b", []byte(secret)), "[]")
	for _, form := range []string{secret, fmt.Sprintf("%x", secret), strings.Trim(fmt.Sprintf("%d", []byte(secret)), "[]"), bits} {
		if strings.Contains(out.String(), form) {
			t.Errorf("the password is printed as %s in:\n%s", form, out.String())
		}
	}
	if got := fmt.Sprint(changes); got != "[write proxy p-01 write adopted proxy a-01 remove proxy p-02 write proxy bad]" {
		t.Errorf("changes print as %s", got)
	}
}
