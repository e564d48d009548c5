package model

import (
	"fmt"
	"strings"
	"testing"
)

// No verb and no flag prints a password, and the usual ones print what they did.
// Of %p and %w for what is no pointer and no error, which vet refuses, fmt asks
// nobody.
func TestCredentials_everyVerb(t *testing.T) {
	const secret = "hunter2hunter2"
	c := Credentials{User: "u", Password: secret}
	hex := fmt.Sprintf("%x", secret)
	for _, flag := range []string{"", "+", "-", "#", " ", "0", "20", ".3", "+#"} {
		for _, verb := range "vsqxXdboOcUeEfFgGtTz" {
			format := "%" + flag + string(verb)
			for _, v := range []any{c, &c, []Credentials{c}, struct{ C Credentials }{c}} {
				if s := fmt.Sprintf(format, v); strings.Contains(s, secret) || strings.Contains(strings.ToLower(s), hex) || strings.Contains(s, "104 117 110") {
					t.Errorf("%s of %T: %s", format, v, s)
				}
			}
		}
	}
	for format, want := range map[string]string{
		"%v": "u:***", "%+v": "u:***", "%#v": "u:***", "%s": "u:***", "%q": `"u:***"`, "%8s|": "   u:***|", "%-8v|": "u:***   |", "%x": "753a2a2a2a", "%d": "u:***", "%U": "u:***",
	} {
		if s := fmt.Sprintf(format, c); s != want {
			t.Errorf("%s: %q, want %q", format, s, want)
		}
	}
}
