package libvirt

import (
	"strings"
	"testing"
	"time"

	"virdeck/model"
)

func someOwner() model.Owner {
	return model.Owner{
		Fleet: "home", Proxy: "p-01", UID: "0190c1a2", Controller: "c-1", SpecHash: "abc", Pool: "web",
		Phase: model.PhaseReady, CreatedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
}

func TestMark_form(t *testing.T) {
	const want = `<owner fleet="home" proxy="p-01" uid="0190c1a2" controller="c-1" spec="abc" pool="web" phase="ready" created="2026-01-02T03:04:05Z"></owner>`
	got, err := markText(someOwner(), "")
	if err != nil || got != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	inside, err := markText(someOwner(), markURI)
	if err != nil || !strings.HasPrefix(inside, `<owner xmlns="urn:virdeck:owner:1" fleet="home"`) {
		t.Errorf("%s, %v", inside, err)
	}
	for _, text := range []string{got, inside, strings.ReplaceAll(strings.ReplaceAll(inside, "<owner xmlns=", "<virdeck:owner xmlns:virdeck="), "</owner", "</virdeck:owner")} {
		if o, err := parseMark(text); err != nil || o != someOwner() {
			t.Errorf("%s: %+v, %v", text, o, err)
		}
	}
}

func TestMark_writesOnlyWhatItCanRead(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*model.Owner)
		want   string
	}{
		{"quotes and angles", func(o *model.Owner) { o.Fleet, o.Proxy = `"<&>'`, "]]>" }, ""},
		{"another zone and parts of a second", func(o *model.Owner) {
			o.CreatedAt = time.Date(2026, 1, 2, 3, 4, 5, 999, time.FixedZone("x", 7200))
		}, ""},
		{"a control character", func(o *model.Owner) { o.Proxy = "a\x1bb" }, "mark: does not read back as it was written"},
		{"a line", func(o *model.Owner) { o.UID = "a\nb" }, `mark: attribute "uid": control characters or no UTF-8`},
		{"no UTF-8", func(o *model.Owner) { o.UID = "a\xff" }, "mark: does not read back as it was written"},
		{"no fleet", func(o *model.Owner) { o.Fleet = "" }, "mark: no fleet"},
		{"no phase", func(o *model.Owner) { o.Phase = "" }, `mark: phase "", which there is not`},
		{"long", func(o *model.Owner) { o.Fleet = strings.Repeat("x", 257) }, `mark: attribute "fleet": 257 bytes, at most 256 are read`},
	} {
		o := someOwner()
		tt.change(&o)
		_, err := markText(o, "")
		if got := errText(err); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestParseMark_refuses(t *testing.T) {
	good, err := markText(someOwner(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", "0 elements, want one"},
		{"text", "hello", "text, want none"},
		{"cut", good[:40], "XML syntax error on line 1: unexpected EOF"},
		{"two", good + good, "2 elements, want one"},
		{"something inside", strings.Replace(good, "></", "><x/></", 1), "element <x> inside, want none"},
		{"text inside", strings.Replace(good, "></", ">x</", 1), "text, want none"},
		{"another element", strings.ReplaceAll(good, "owner", "user"), "element <user>, want <owner>"},
		{"another namespace", strings.Replace(good, "<owner", "<owner xmlns='urn:other'", 1), "element <owner>, want <owner>"},
		{"an entity", "<!DOCTYPE owner [<!ENTITY x 'y'>]>" + good, "a directive, want none"},
		{"one more attribute", strings.Replace(good, "<owner", "<owner version='2'", 1), `attribute "version", which no mark has`},
		{"one twice", strings.Replace(good, "<owner", "<owner uid='2'", 1), `attribute "uid", which no mark has`},
		{"no uid", strings.Replace(good, ` uid="0190c1a2"`, "", 1), "no uid"},
		{"another phase", strings.Replace(good, "ready", "READY", 1), `phase "READY", which there is not`},
		{"no time", strings.Replace(good, "2026-", "26-", 1), `created "26-01-02T03:04:05Z", which is no time`},
		{"an escape", strings.Replace(good, "p-01", "p&#x9;01", 1), `attribute "proxy": control characters or no UTF-8`},
		{"huge", good + strings.Repeat(" ", maxMark), "4236 bytes, at most 4096 are read"},
	} {
		o, err := parseMark(tt.text)
		if got := errText(err); got != tt.want || !o.Zero() {
			t.Errorf("%s: %q, %+v, want %q", tt.name, got, o, tt.want)
		}
	}
}

// Whatever a domain's metadata holds, it is a whole mark or nobody's, and what is
// read can be written.
func FuzzParseMark(f *testing.F) {
	good, err := markText(someOwner(), "")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(strings.Replace(good, "></owner>", "/>", 1))
	f.Add("<owner/>")
	f.Fuzz(func(t *testing.T, s string) {
		o, err := parseMark(s)
		if err != nil {
			if !o.Zero() {
				t.Errorf("%+v beside %v", o, err)
			}
			return
		}
		again, err := markText(o, "")
		if err != nil {
			t.Fatalf("%+v cannot be written: %v", o, err)
		}
		if back, err := parseMark(again); err != nil || back != o {
			t.Errorf("%+v, %v, want %+v", back, err, o)
		}
	})
}
