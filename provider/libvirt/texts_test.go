package libvirt

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"virdeck/model"
)

// All that is wrong with a text of a template is said, with its line, and in no
// parser's words.
func TestCheckTexts_userData(t *testing.T) {
	const head = "#cloud-config\n"
	for _, tt := range []struct{ name, text, want string }{
		{"none", "", ""},
		{"nothing in it", head, ""},
		{"null", head + "null\n", ""},
		{"good", head + "packages: [curl]\nwrite_files:\n- {path: /a}\nx: &x {a: b}\ny: {<<: *x}\n", ""},
		{"a script", "#!/bin/sh\n", "user_data: line 1: the first line is not #cloud-config; allowed: cloud-config, the one kind that can be merged"},
		{"no YAML", head + "a: [", "user_data: line 2: not YAML: did not find expected node content"},
		{"no YAML further on", head + "a: b\n---\nc: [", "user_data: line 4: not YAML: did not find expected node content"},
		{"a list", head + "\n- a\n", `user_data: line 3: not settings with names; allowed: lines such as "packages: [curl]"`},
		{"a text", head + "a\n", `user_data: line 2: not settings with names; allowed: lines such as "packages: [curl]"`},
		{"names twice", head + "a: 1\nb: {x: 1,\n  x: 2}\na: 2\n", "user_data: line 4: \"x\" is given already in line 3; allowed: each once\nuser_data: line 5: \"a\" is given already in line 2; allowed: each once"},
		{"a name that is none", head + "? [a]\n: b\n", "user_data: line 2: a name is a list or has names itself; allowed: a text"},
		{"two documents", head + "a: 1\n---\nb: 1\n", "user_data: line 3: another YAML document begins; allowed: one"},
		{"an unknown name", head + "a: *b\n", "user_data: not YAML: unknown anchor 'b' referenced"},
		{"another type", head + "a: !!int x\n", "user_data: not YAML: cannot decode !!str `x` as a !!int"},
		{"aliases without end", head + "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n",
			"user_data: not YAML: document contains excessive aliasing"},
		{"what is ours", head + "hostname: x\nwrite_files:\n- path: /etc/proxy.env\n- {content: x}\n",
			"user_data: line 2: hostname is set by virdeck; allowed: no hostname\nuser_data: line 4: /etc/proxy.env is written by virdeck; allowed: other files\nuser_data: line 5: item 2 of write_files has no path; allowed: one in each"},
		{"no list", head + "write_files: x\n", "user_data: line 2: write_files is not a list; allowed: a list of files"},
	} {
		tpl := goodTemplate()
		tpl.UserData = tt.text
		textsSaid(t, tt.name, tpl, tt.want)
	}
}

func TestCheckTexts_xml(t *testing.T) {
	own := identify(model.Owner{})
	const one = "; allowed: one <domain> element"
	for _, tt := range []struct{ name, text, want string }{
		{"none", " \n", ""},
		{"good", "<?xml version='1.0' encoding='UTF-8'?>\n<!-- x --><domain xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'><devices/></domain>\n", ""},
		{"no end", "<domain>\n <devices>\n", "xml: line 3: not XML: it ends before </devices>" + one},
		{"half a tag", "<dom", "xml: line 1: not XML: it ends too early" + one},
		{"another end", "<domain>\n<a></b></domain>", "xml: line 2: not XML: element <a> closed by </b>" + one},
		{"no text of ours", "x\n", "xml: line 1: text beside the element" + one},
		{"a comment alone", "<!-- x -->", "xml: line 1: nothing in it" + one},
		{"another encoding", "<?xml version='1.0' encoding='latin1'?><domain/>", `xml: line 1: its encoding is said to be "latin1"; allowed: UTF-8` + one},
		{"another root", "<network/>", "xml: line 1: its element is <network>" + one},
		{"two", "<domain/>\n<domain/>", "xml: line 2: a second element <domain>" + one},
		{"no number", "<domain>\n  <vcpu>two</vcpu>\n</domain>", `xml: line 2: "two" is not a number, or not one that can stand there; allowed: what libvirt's <domain> has`},
		{"half a device", "<domain><devices>\n<interface><source/></interface></devices></domain>", "xml: line 2: missing interface type attribute; allowed: what libvirt's <domain> has"},
		{"all that is lost", "<domain>\n<devices>\n<flux\n a='b'><x/></flux><flux/></devices>\n<vcpu colour='red'>2</vcpu></domain>",
			"xml: line 3: <domain><devices><flux> is not known here and would be lost; allowed: what libvirt's <domain> has\n" +
				"xml: line 5: attribute colour of <domain><vcpu> is not known here and would be lost; allowed: what libvirt's <domain> has"},
		{"all that is ours", "<domain type='xen' id='1'>\n<name>x</name>\n<uuid>x</uuid>\n<metadata/>\n<devices>\n" +
			"<disk device='disk'><target dev='vdc'/></disk>\n<disk device='disk'><target dev='vda'/></disk>\n" +
			"<disk type='volume' device='disk'><source pool='default' volume='" + own.seed + "'/><target dev='vdd'/></disk>\n" +
			"<interface type='bridge'><mac address='" + strings.ToUpper(own.mac) + "'/><source bridge='b'/></interface>\n" +
			"<channel type='unix'><target type='virtio' name='org.qemu.guest_agent.0'/></channel>\n</devices></domain>",
			"xml: line 1: attribute type of <domain> is set by virdeck; allowed: type in the template\n" +
				"xml: line 1: attribute id of <domain> is set by virdeck; allowed: no id\n" +
				"xml: line 2: <domain><name> is set by virdeck; allowed: no name\n" +
				"xml: line 3: <domain><uuid> is set by virdeck; allowed: no uuid\n" +
				"xml: line 4: <domain><metadata> is set by virdeck; allowed: no metadata\n" +
				"xml: line 7: the disk vda is virdeck's; allowed: other targets\n" +
				"xml: line 8: the volume " + own.seed + " is virdeck's; allowed: other volumes\n" +
				"xml: line 9: the interface with MAC " + own.mac + " is virdeck's; allowed: other MACs, or none\n" +
				"xml: line 10: the channel org.qemu.guest_agent.0 is virdeck's; allowed: other channels"},
	} {
		tpl := goodTemplate()
		tpl.XML = tt.text
		textsSaid(t, tt.name, tpl, tt.want)
	}
}

func textsSaid(t *testing.T, name string, tpl model.Template, want string) {
	t.Helper()
	var got []string
	for _, p := range CheckTexts(tpl) {
		got = append(got, p.Error())
	}
	if diff := cmp.Diff(want, strings.Join(got, "\n")); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
	if valid := validateTemplate(tpl); (valid == nil) != (want == "") {
		t.Errorf("%s: whoever makes VMs of it is told %v", name, valid)
	}
}

func FuzzCheckTexts(f *testing.F) {
	f.Add("#cloud-config\na: &a [b]\nwrite_files: [*a, {path: x}]\n", "<domain><devices><disk><target dev='vda'/></disk></devices></domain>")
	f.Add("#cloud-config\n? {a: b}\n: c\n", "<domain>\n<vcpu>x</vcpu></domain>")
	f.Fuzz(func(t *testing.T, userData, xml string) {
		tpl := goodTemplate()
		tpl.UserData, tpl.XML = userData, xml
		for _, p := range CheckTexts(tpl) {
			text := map[string]string{"user_data": userData, "xml": xml}[p.Setting]
			if p.Msg == "" || p.Line < 0 || p.Line > strings.Count(text, "\n")+1 {
				t.Errorf("%+v of\n%s", p, text)
			}
		}
	})
}
