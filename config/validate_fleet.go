package config

import (
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"virdeck/internal/problem"
)

func (k *checker) hosts() {
	names, uris := map[string]keyPath{}, map[string]keyPath{}
	k.isHost = make(map[string]bool, len(k.c.Hosts))
	for i := range k.c.Hosts {
		k.hostNames = append(k.hostNames, k.c.Hosts[i].Name)
		k.isHost[k.c.Hosts[i].Name] = true
		if at := section("host", index(i)); !k.blamed[at.id()] {
			k.host(at, &k.c.Hosts[i], names, uris)
		}
	}
}

func (k *checker) host(at keyPath, h *Host, names, uris map[string]keyPath) {
	k.unique(at, h.Name, names)
	switch first, again := uris[h.URI]; {
	case h.URI == "":
		k.missing(at, "uri", uriForms)
	case again:
		k.problem(at.with("uri"), "the same as %s in line %d; allowed: each host once", k.label(first[:2]), k.pos.of(first))
	default:
		uris[h.URI] = at.with("uri")
		var err error
		if h.Endpoint, err = parseURI(h.URI, k.src.resolve); err != nil {
			k.problem(at.with("uri"), "%v", err)
		}
	}
	sources := []Source{SourceLease, SourceAgent, SourceARP}
	if len(h.Sources) == 0 {
		k.problem(at.with("sources"), "empty; allowed: at least one of %s", problem.Quoted(sources))
	}
	for i, s := range h.Sources {
		where := at.with("sources", index(i))
		if oneOf(k, where, s, sources...) && slices.Contains(h.Sources[:i], s) {
			k.problem(where, "%q is given twice; allowed: each once", string(s))
		}
	}
	oneOf(k, at.with("prefer"), h.Prefer, IPv4, IPv6)
}

// unique checks the name of a table and that no other has it.
func (k *checker) unique(at keyPath, name string, seen map[string]keyPath) {
	where := at.with("name")
	if !k.has(where) {
		k.missing(at, "name", "a name that no other has")
		return
	}
	if !k.name(where, name) {
		return
	}
	if first, again := seen[name]; again {
		k.problem(where, "given already in line %d; allowed: a name that no other has", k.pos.of(first))
		return
	}
	seen[name] = where
}

func (k *checker) proxies() {
	names, serves := map[string]keyPath{}, map[string]keyPath{}
	for i := range k.c.Proxies {
		if at := section("proxy", index(i)); !k.blamed[at.id()] {
			k.proxy(at, &k.c.Proxies[i], names, serves)
		}
	}
}

func (k *checker) proxy(at keyPath, p *Proxy, names, serves map[string]keyPath) {
	k.unique(at, p.Name, names)
	k.backing(at, p)
	k.service(at, p.Port, p.Protocol, p.Probe)
	if p.Managed() {
		for _, key := range []string{"user", "password", "password_file", "password_env"} {
			if k.has(at.with(key)) {
				k.problem(at.with(key), "given with template; allowed: no credentials, since each managed proxy gets its own")
			}
		}
	} else {
		k.credentials(at, p)
	}
	k.name(at.with("pool"), p.Pool)
	k.labels(at, p.Labels)

	where := fmt.Sprintf("%s\x00%s\x00%s\x00%d", p.Host, p.Domain, p.Address, p.Port)
	if first, again := serves[where]; again && p.Port != 0 && p.Domain+p.Address != "" {
		k.problem(at, "the same place and port as %s in line %d; allowed: each once", k.label(first), k.pos.of(first))
	} else {
		serves[where] = at
	}
}

// service checks what a proxy, or each member of a pool, offers and how it is
// asked.
func (k *checker) service(at keyPath, port int, protocol Protocol, probe Probe) {
	if !k.has(at.with("port")) {
		k.missing(at, "port", "1 to 65535")
	} else {
		k.number(at.with("port"), port, 1, 65535)
	}
	oneOf(k, at.with("protocol"), protocol, ProtocolHTTP)
	if k.has(at.with("probe")) && oneOf(k, at.with("probe"), probe, ProbeHTTP, ProbeConnect) {
		k.probe(at, probe)
	}
}

// backing checks what stands behind a proxy: a domain, a template or an address.
func (k *checker) backing(at keyPath, p *Proxy) {
	const either = "host (and domain), host and template, or address"
	hasHost, hasAddress, hasTemplate := k.has(at.with("host")), k.has(at.with("address")), k.has(at.with("template"))
	if hasTemplate {
		for _, key := range []string{"address", "domain"} {
			if k.has(at.with(key)) {
				k.problem(at.with(key), "given with template; allowed: %s", either)
			}
		}
		k.template(at, p.Template)
		if hasHost {
			k.onHost(at, p.Host)
		} else {
			k.problem(at.with("template"), "given without host; allowed: both, for a VM that is made there, or a [[pool]] for several")
		}
		return
	}
	switch {
	case hasHost && hasAddress:
		k.problem(at.with("address"), "given with host; allowed: %s", either)
	case hasHost:
		k.adopted(at, p)
	case hasAddress:
		if k.has(at.with("domain")) {
			k.problem(at.with("domain"), "given with address; allowed: %s", either)
		}
		a, err := netip.ParseAddr(p.Address)
		if err != nil || a.Zone() != "" || a.IsUnspecified() || a.IsMulticast() {
			k.problem(at.with("address"), "%q is not the address of a machine; allowed: an IP address such as \"192.0.2.10\", without port", p.Address)
			return
		}
		p.Address = a.Unmap().String()
	default:
		k.problem(at, "neither host nor address; allowed: %s", either)
	}
}

// onHost checks the name of the host that a proxy is on.
func (k *checker) onHost(at keyPath, host string) {
	if host == "" {
		k.missing(at, "host", "the name of a [[host]]")
		return
	}
	k.known(at.with("host"), host, "host", k.hostNames, k.isHost)
}

// template checks the name of the template that a proxy or pool is made of.
func (k *checker) template(at keyPath, name string) {
	if name == "" {
		k.missing(at, "template", "the name of a [[template]]")
		return
	}
	k.known(at.with("template"), name, "template", k.templateNames, k.isTemplate)
}

// known checks that there is a table of a kind with the name.
func (k *checker) known(at keyPath, name, kind string, names []string, is map[string]bool) {
	switch {
	case len(names) == 0:
		k.problem(at, "there is no [[%[1]s]] named %[2]q; allowed: the name of a [[%[1]s]], and this file has none", kind, name)
	case !is[name]:
		k.problem(at, "there is no [[%s]] named %q%s allowed: %s", kind, name, orSemicolon(problem.Suggest(name, names)), problem.Listed(names))
	}
}

func (k *checker) adopted(at keyPath, p *Proxy) {
	k.onHost(at, p.Host)
	switch where := at.with("domain"); {
	case !k.has(where):
		p.Domain = p.Name
	case p.Domain == "":
		k.missing(at, "domain", "the libvirt domain's name, or no domain setting for the proxy's own")
	case strings.Contains(p.Domain, "/"):
		k.problem(where, "%q is not a libvirt domain's name; allowed: no slash", p.Domain)
	default:
		k.text(where, p.Domain)
	}
}

// probe refuses a kind of probe that none of the targets can be asked by.
func (k *checker) probe(at keyPath, probe Probe) {
	if probe != ProbeHTTP || len(k.c.Health.Targets) == 0 {
		return
	}
	for i := range k.c.Health.Targets {
		u, err := url.Parse(k.c.Health.Targets[i].URL)
		if err != nil || u.Scheme != "https" {
			return // one can be asked, or is refused on its own
		}
	}
	k.problem(at.with("probe"), "%q cannot ask for an https target, and there is no other; allowed: %q, or no probe setting", string(probe), string(ProbeConnect))
}

// credentials checks user and password, and reads the password from where it is.
func (k *checker) credentials(at keyPath, p *Proxy) {
	user := at.with("user")
	if k.has(user) {
		switch {
		case p.User == "":
			k.missing(at, "user", "a name, or no user setting")
		case strings.Contains(p.User, ":"):
			k.problem(user, "holds a colon, which parts user and password in a request; allowed: no colon")
		default:
			k.text(user, p.User)
		}
	}
	var given []string
	for _, key := range []string{"password", "password_file", "password_env"} {
		if k.has(at.with(key)) {
			given = append(given, key)
		}
	}
	switch {
	case len(given) == 0:
		if k.has(user) {
			k.problem(user, "given without a password; allowed: both, or neither")
		}
		return
	case len(given) > 1:
		k.problem(at.with(given[1]), "given with %s; allowed: one of password, password_file and password_env", given[0])
		return
	case !k.has(user):
		k.problem(at.with(given[0]), "given without user; allowed: both, or neither")
	}
	where := at.with(given[0])
	switch given[0] {
	case "password":
		if k.src.Mode&0o077 != 0 {
			k.problem(where, "stands in a file that others may read (mode %04o); allowed: mode 0600, or password_file or password_env instead", k.src.Mode.Perm())
		}
		if !p.Password.IsSet() {
			k.missing(at, "password", "a text, or no password setting")
		}
	case "password_file":
		if p.PasswordFile == "" {
			k.missing(at, "password_file", "the path of a file with mode 0600")
			return
		}
		p.PasswordFile = k.src.resolve(p.PasswordFile)
		secret, err := k.src.secret(p.PasswordFile)
		if err != nil {
			k.problem(where, "%v", err)
			return
		}
		p.Password = secret
	case "password_env":
		if p.PasswordEnv == "" || strings.ContainsAny(p.PasswordEnv, "=\x00") {
			k.problem(where, "%q is not a variable's name; allowed: such as \"PROXY_PASSWORD\"", p.PasswordEnv)
			return
		}
		p.Password = NewSecret(k.src.Env(p.PasswordEnv))
		if !p.Password.IsSet() {
			k.problem(where, "the variable %q is not set or empty; allowed: a variable that holds the password", p.PasswordEnv)
		}
	}
	if strings.ContainsFunc(p.Password.Reveal(), control) {
		k.problem(where, "the password holds a control character; allowed: printable text")
	}
}

func (k *checker) labels(at keyPath, labels map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		where := at.with("labels", key)
		k.name(where, key)
		k.text(where, labels[key])
	}
}
