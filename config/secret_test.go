package config

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

func TestSecret_neverPrinted(t *testing.T) {
	const word = "hunter2"
	c := mustParse(t, adopt("user = \"u\"\npassword = \""+word+"\""))
	secret := c.Proxies[0].Password
	if secret.Reveal() != word {
		t.Fatalf("Reveal() = %q", secret.Reveal())
	}
	inside := struct {
		proxy  Proxy  // unexported: fmt calls no method in there
		secret Secret // likewise
	}{c.Proxies[0], secret}

	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, v := range []any{secret, &secret, c.Proxies[0], *c, c, inside, &inside, []Secret{secret}, map[string]Secret{"k": secret}} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
	}
	for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(h).Info("message", "secret", secret, "proxy", c.Proxies[0], "config", c)
	}
	if err := json.NewEncoder(&out).Encode(c); err != nil {
		t.Error(err)
	}
	if err := toml.NewEncoder(&out).Encode(c); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{word, fmt.Sprintf("%x", word), "68 75 6e"} {
		if strings.Contains(out.String(), bad) {
			t.Errorf("printed %q:\n%s", bad, out.String())
		}
	}
	if !strings.Contains(out.String(), `"Password":"(secret)"`) {
		t.Errorf("JSON does not say that there is a secret:\n%s", out.String())
	}
}

func TestSecret_equal(t *testing.T) {
	a, b, none := NewSecret("a"), NewSecret("b"), NewSecret("")
	for _, tt := range []struct {
		x, y Secret
		want bool
	}{
		{a, NewSecret("a"), true}, {a, b, false}, {a, NewSecret("aa"), false},
		{a, none, false}, {none, Secret{}, true},
	} {
		if got := tt.x.Equal(tt.y); got != tt.want {
			t.Errorf("%q.Equal(%q) = %v", tt.x.Reveal(), tt.y.Reveal(), got)
		}
	}
	if !reflect.DeepEqual(a, NewSecret("a")) || reflect.DeepEqual(a, b) {
		t.Error("reflect.DeepEqual does not compare the values")
	}
	if none.IsSet() || none.String() != "" || !a.IsSet() || a.String() != "(secret)" {
		t.Error("IsSet or String is wrong")
	}
}
