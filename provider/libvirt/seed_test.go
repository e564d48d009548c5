package libvirt

import (
	"bytes"
	"strings"
	"testing"

	"virdeck/model"
)

func TestUserData(t *testing.T) {
	spec := model.BuildSpec{Hostname: "p-01", Port: 8080, Creds: model.Credentials{User: "u", Password: "p: #'\"x"}}
	const ours = `  - path: /etc/proxy.env
    permissions: '0600'
    content: |
      PROXY_PORT=8080
      PROXY_AUTH=u:p: #'"x
`
	for _, tt := range []struct{ name, theirs, want string }{
		{"alone", "", "#cloud-config\nhostname: p-01\nwrite_files:\n" + ours},
		{"nothing in it", "#cloud-config\n", "#cloud-config\nhostname: p-01\nwrite_files:\n" + ours},
		{"comments and order stay", "#cloud-config\n# mine\npackages: [curl] # a tool\nruncmd:\n  - [ls]\n",
			"#cloud-config\n# mine\npackages: [curl] # a tool\nruncmd:\n  - [ls]\nhostname: p-01\nwrite_files:\n" + ours},
		{"files are added to files", "#cloud-config\nwrite_files:\n- path: /etc/motd\n  content: |\n    hi\n    there\nntp: {enabled: true}\n",
			"#cloud-config\nwrite_files:\n  - path: /etc/motd\n    content: |\n      hi\n      there\n" + ours + "ntp: {enabled: true}\nhostname: p-01\n"},
		{"a list in one line is opened", "#cloud-config\nwrite_files: [{path: /a, content: b}]\n",
			"#cloud-config\nwrite_files:\n  - {path: /a, content: b}\n" + ours + "hostname: p-01\n"},
	} {
		spec.Template.UserData = tt.theirs
		got, err := userData(spec)
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", tt.name, err, got, tt.want)
		}
	}
}

func TestUserData_refuses(t *testing.T) {
	for _, tt := range []struct {
		spec model.BuildSpec
		want string
	}{
		{model.BuildSpec{Hostname: "x"}, "proxy port: 0"},
		{model.BuildSpec{Port: 1, Creds: model.Credentials{User: "a:b"}}, "proxy credentials: a user name with a colon"},
		{model.BuildSpec{Port: 1, Creds: model.Credentials{User: "a", Password: "b\nPROXY_PORT=1"}}, "proxy credentials: control characters"},
	} {
		if _, err := userData(tt.spec); errText(err) != tt.want {
			t.Errorf("%v, want %q", err, tt.want)
		}
	}
}

// The image is the same each time, has the names and the label that Linux and
// cloud-init look for, and says what it was told.
func TestSeedImage(t *testing.T) {
	b := testBuild(model.BaseImage{Volume: "base.qcow2", Format: "qcow2"}, "p-01")
	id := identify(b.Owner)
	img, err := seedImage(id, b.Spec)
	if err != nil {
		t.Fatal(err)
	}
	again, err := seedImage(id, b.Spec)
	if err != nil || !bytes.Equal(img, again) {
		t.Errorf("two images of one spec differ, or %v", err)
	}
	pvd := img[16*isoSector:]
	if label := strings.TrimRight(string(pvd[40:72]), " \x00"); string(pvd[1:6]) != "CD001" || label != "cidata" {
		t.Errorf("%q with the label %q", pvd[1:6], label)
	}
	for _, name := range []string{"meta-data;1", "user-data;1"} {
		if !bytes.Contains(img[18*isoSector:19*isoSector], []byte(name)) {
			t.Errorf("no %s in its directory", name)
		}
	}
	files, err := isoFiles(img)
	if err != nil {
		t.Fatal(err)
	}
	const meta = "instance-id: iid-50715661-df58-5469-9da5-f0ecea8fdad5\nlocal-hostname: p-01\n"
	if string(files["meta-data"]) != meta || !bytes.HasPrefix(files["user-data"], []byte("#cloud-config\n")) {
		t.Errorf("%q", files)
	}
	spec, err := seedSpec(img)
	if err != nil || spec.Hostname != b.Spec.Hostname || spec.Port != b.Spec.Port || spec.Creds != b.Spec.Creds {
		t.Errorf("read back %+v, %v", spec, err)
	}
	if _, err := seedSpec(img[:len(img)/2]); err == nil {
		t.Error("half an image can be read")
	}
}

// Whatever a volume holds, reading it ends, and without a panic.
func FuzzSeedSpec(f *testing.F) {
	b := testBuild(model.BaseImage{Volume: "base.qcow2", Format: "qcow2"}, "p-01")
	img, err := seedImage(identify(b.Owner), b.Spec)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(img[16*isoSector:])
	f.Add([]byte{})
	f.Fuzz(func(_ *testing.T, tail []byte) {
		_, _ = seedSpec(append(make([]byte, 16*isoSector), tail...)) // a verdict either way
	})
}
