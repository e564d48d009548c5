package config

import (
	"maps"
	"slices"

	"virdeck/model"
)

// Model is the template as the rest of the program knows it.
func (t *Template) Model() model.Template {
	out := model.Template{
		Name: t.Name, VCPUs: t.VCPUs, MemoryMB: int(t.Memory), DiskMB: int(t.Disk), Storage: t.Storage,
		Network: t.Network, Bridge: t.Bridge, Machine: t.Machine, Arch: t.Arch,
		VirtType: string(t.Type), Firmware: model.Firmware(t.Firmware), UserData: t.UserData, XML: t.XML,
		Base: model.BaseImage{Volume: t.Base, File: t.BaseFile, Size: t.BaseSize, Format: string(t.BaseFormat)},
	}
	if t.BaseFile != "" {
		out.Base.SHA256 = t.BaseSHA256
	}
	return out
}

// Model is the pool as the rest of the program knows it.
func (p *Pool) Model() model.PoolSpec {
	out := model.PoolSpec{
		Name: p.Name, Template: p.Template, Count: p.Count, Port: uint16(p.Port), Probe: p.Probe.model(), //nolint:gosec // checked
		Surge: p.Surge, MinAvailable: p.MinAvailable, MaxAge: p.MaxAge, DrainTime: p.DrainTime,
		Failover: p.Failover, FailoverAfter: p.FailoverAfter, Labels: maps.Clone(p.Labels),
	}
	for _, h := range p.Hosts {
		out.Hosts = append(out.Hosts, model.HostName(h))
	}
	return out
}

func (p Probe) model() model.ProbeKind {
	if p == ProbeConnect {
		return model.ProbeConnect
	}
	return model.ProbeHTTP
}

// TemplatesByName returns all templates.
func (c *Config) TemplatesByName() map[string]model.Template {
	out := make(map[string]model.Template, len(c.Templates))
	for i := range c.Templates {
		out[c.Templates[i].Name] = c.Templates[i].Model()
	}
	return out
}

// PoolSpecs returns all pools, in the order of the file.
func (c *Config) PoolSpecs() []model.PoolSpec {
	var out []model.PoolSpec
	for i := range c.Pools {
		out = append(out, c.Pools[i].Model())
	}
	return out
}

// ManagedProxies returns the proxies with a template of their own, in the order
// of the file. Members of pools are not among them.
func (c *Config) ManagedProxies() []model.ManagedSpec {
	var out []model.ManagedSpec
	for _, p := range c.Proxies {
		if p.Managed() {
			out = append(out, model.ManagedSpec{Template: p.Template, ProxySpec: model.ProxySpec{
				Name: model.ProxyName(p.Name), Host: model.HostName(p.Host), Backing: model.BackingManaged,
				Port: uint16(p.Port), Probe: p.Probe.model(), Pool: p.Pool, Labels: maps.Clone(p.Labels), //nolint:gosec // checked
			}})
		}
	}
	return out
}

// Unmanaged returns the proxies without a template, in the order of the file.
func (c *Config) Unmanaged() []Proxy {
	return slices.DeleteFunc(slices.Clone(c.Proxies), func(p Proxy) bool { return p.Managed() })
}
