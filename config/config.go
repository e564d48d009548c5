package config

import (
	"log/slog"
	"time"
)

// Config is a whole configuration: the file's settings over the defaults.
// Paths in it are absolute or relative to the working directory, never to the
// file; secrets are read.
type Config struct {
	// File is the name the configuration was read from, as it was given.
	File string `toml:"-"`

	Fleet      Fleet      `toml:"fleet"`
	Controller Controller `toml:"controller"`
	Budget     Budget     `toml:"budget"`
	Link       Link       `toml:"link"`
	Health     Health     `toml:"health"`
	Hosts      []Host     `toml:"host"`
	Templates  []Template `toml:"template"`
	Pools      []Pool     `toml:"pool"`
	Proxies    []Proxy    `toml:"proxy"`
	UI         UI         `toml:"ui"`
	Log        Log        `toml:"log"`

	warnings []Problem
}

// Fleet names the whole and says where its state lives.
type Fleet struct {
	// Name is what the console shows.
	Name string `toml:"name"`
	// StateDir is the directory of the unix socket; see [DefaultStateDir].
	StateDir string `toml:"state_dir"`
}

// Controller holds the pace of the reconcile loop.
type Controller struct {
	// Poll is the interval of a host's bulk poll.
	Poll time.Duration `toml:"poll"`
	// AddressRefresh is how often a known address is asked for again.
	AddressRefresh time.Duration `toml:"address_refresh"`
	// AddressRetry is the same while an address is unknown, held or in doubt.
	AddressRetry time.Duration `toml:"address_retry"`
	// AddressHold is the number of address polls, at least, that an address is
	// kept after every source has gone silent.
	AddressHold int `toml:"address_hold"`
	// ReconcileBudget bounds one reconcile of one proxy.
	ReconcileBudget time.Duration `toml:"reconcile_budget"`
	// WorkersPerHost bounds the reconciles of one host that run at once. It is of
	// the start: a reload does not change it.
	WorkersPerHost int `toml:"workers_per_host"`
	// CreatesPerHost bounds the VMs of one host that are made at once.
	CreatesPerHost int `toml:"creates_per_host"`
	// CreateTimeout bounds one try to make a VM, the upload of its base image
	// included.
	CreateTimeout time.Duration `toml:"create_timeout"`
	// DeleteTimeout bounds one try to remove a VM.
	DeleteTimeout time.Duration `toml:"delete_timeout"`
	// OrphanGrace is how long a VM of ours that is not declared any more is left
	// alone.
	OrphanGrace time.Duration `toml:"orphan_grace"`
	// StartStopped has managed VMs started that were found shut off or crashed.
	StartStopped bool `toml:"start_stopped"`
	// ReplaceAfter is how long a managed VM may run and be of no use by its own
	// fault before another takes its place; 0: for ever.
	ReplaceAfter time.Duration `toml:"replace_after"`
}

// Budget limits what is done to managed VMs without an operator's word: creates
// that replace, starts, deletes.
type Budget struct {
	// PerHost is how many of them a host may see in a Window; 0: none.
	PerHost int `toml:"per_host"`
	// PerPool is the same for a pool.
	PerPool int `toml:"per_pool"`
	// Window slides.
	Window time.Duration `toml:"window"`
}

// Link holds the timing of the pooled connection to a host.
type Link struct {
	// Ping is the interval of keepalive pings.
	Ping time.Duration `toml:"ping"`
	// Silence without any answer asks for a second opinion.
	Silence time.Duration `toml:"silence"`
	// SecondOpinion bounds the try on a fresh connection.
	SecondOpinion time.Duration `toml:"second_opinion"`
	// DialTimeout bounds dialling and opening.
	DialTimeout time.Duration `toml:"dial_timeout"`
	// BackoffMin is the first wait between two dials.
	BackoffMin time.Duration `toml:"backoff_min"`
	// BackoffMax is the longest wait in the first minute.
	BackoffMax time.Duration `toml:"backoff_max"`
	// BackoffMaxLate is the longest wait after that.
	BackoffMaxLate time.Duration `toml:"backoff_max_late"`
	// Slots is the number of calls in flight on one connection.
	Slots int `toml:"slots"`
	// AgentResponseTimeout is set in libvirt for every running domain; whole
	// seconds, 0 leaves libvirt's own (it waits for ever).
	AgentResponseTimeout time.Duration `toml:"agent_response_timeout"`
}

// Health holds the pace and the thresholds of the probes.
type Health struct {
	// Interval between two checks of one proxy.
	Interval time.Duration `toml:"interval"`
	// Fast is the interval in transition.
	Fast time.Duration `toml:"fast"`
	// Slow is the interval of a proxy that has been down for SlowAfter.
	Slow time.Duration `toml:"slow"`
	// SlowAfter is when a proxy that is down is checked at Slow.
	SlowAfter time.Duration `toml:"slow_after"`
	// Timeout bounds one check, from dialling to the last byte.
	Timeout time.Duration `toml:"timeout"`
	// Rise is the number of consecutive passes that admit.
	Rise int `toml:"rise"`
	// Fall is the number of consecutive failures that demote.
	Fall int `toml:"fall"`
	// Brake is the longest that demotions of many at once wait for witnesses.
	Brake time.Duration `toml:"brake"`
	// Control asks for control probes: a target asked without a proxy.
	Control bool `toml:"control"`
	// Targets are what the probes ask for.
	Targets []Target `toml:"target"`
}

// Target is one URL that probes ask for through a proxy.
type Target struct {
	// URL is http or https, without user information.
	URL string `toml:"url"`
	// Status lists the answers that pass.
	Status []int `toml:"status"`
	// Body must be part of the answer's body; empty accepts every body.
	Body string `toml:"body"`
	// EchoIP says that the body is the address the request came from.
	EchoIP bool `toml:"echo_ip"`
}

// Host is one libvirt host.
type Host struct {
	// Name is unique among the hosts.
	Name string `toml:"name"`
	// URI as it stands in the file; Endpoint is what it means.
	URI      string   `toml:"uri"`
	Endpoint Endpoint `toml:"-"`
	// Sources are asked for addresses, in this order; never empty.
	Sources []Source `toml:"sources"`
	// Prefer chooses among addresses of both families.
	Prefer Family `toml:"prefer"`
	// SetAgentTimeout says whether link.agent_response_timeout is applied here.
	SetAgentTimeout bool `toml:"set_agent_timeout"`
}

// Source is an address source of a libvirt host.
type Source string

// The address sources.
const (
	SourceLease Source = "lease" // the DHCP server of a libvirt network
	SourceAgent Source = "agent" // the guest agent
	SourceARP   Source = "arp"   // the host's neighbour table
)

// Family is an address family.
type Family string

// The address families.
const (
	IPv4 Family = "ipv4"
	IPv6 Family = "ipv6"
)

// Proxy is one declared proxy. Host and Domain are set (an adopted domain), or
// Host and Template (a managed one), or Address (an external proxy).
type Proxy struct {
	// Name is unique among the proxies.
	Name string `toml:"name"`
	// Host is the name of a [Host].
	Host string `toml:"host"`
	// Domain is the libvirt domain's name; it defaults to Name.
	Domain string `toml:"domain"`
	// Template is the name of the [Template] that a managed VM is made of.
	Template string `toml:"template"`
	// Address is the IP address of an external proxy, in canonical form.
	Address string `toml:"address"`
	// Port is where the proxy listens, 1 to 65535.
	Port int `toml:"port"`
	// Protocol is what it speaks.
	Protocol Protocol `toml:"protocol"`
	// Probe is how it is checked; empty: by the target's scheme.
	Probe Probe `toml:"probe"`
	// User and Password are the proxy's credentials; User empty: none.
	User string `toml:"user"`
	// Password is the secret, wherever it came from.
	Password Secret `toml:"password"`
	// PasswordFile is the file whose first line is the password.
	PasswordFile string `toml:"password_file"`
	// PasswordEnv is the environment variable that holds the password.
	PasswordEnv string `toml:"password_env"`
	// Pool is the group of proxies that it belongs to.
	Pool string `toml:"pool"`
	// Labels are the operator's own words; nil if there are none.
	Labels map[string]string `toml:"labels"`
}

// External tells whether the proxy is an address without a domain.
func (p *Proxy) External() bool { return p.Address != "" }

// Managed tells whether its VM is made and removed by virdeck.
func (p *Proxy) Managed() bool { return p.Template != "" }

// Protocol is what a proxy speaks.
type Protocol string

// ProtocolHTTP is HTTP forwarding and CONNECT.
const ProtocolHTTP Protocol = "http"

// Probe is a way to check a proxy.
type Probe string

// The probes. The empty one chooses by target: forward for http, CONNECT for
// https.
const (
	ProbeByTarget Probe = ""
	ProbeHTTP     Probe = "http"
	ProbeConnect  Probe = "connect"
)

// UI is how the console looks.
type UI struct {
	// Background of the terminal: auto asks it; dark and light overrule what it
	// says, for terminals that say nothing or the wrong thing.
	Background string `toml:"background"`
	// ASCII draws with ASCII characters alone.
	ASCII bool `toml:"ascii"`
}

// Log says what is logged and where to.
type Log struct {
	// Level is debug, info, warn or error; see [Log.SlogLevel].
	Level string `toml:"level"`
	// File gets a copy of the log; empty: none.
	File string `toml:"file"`
	// Format of File and of standard error: text or json.
	Format string `toml:"format"`
	// Ring is the number of records that the console can look back on.
	Ring int `toml:"ring"`
}

// SlogLevel is Level as slog knows it; info for a level that Parse would have
// refused.
func (l Log) SlogLevel() slog.Level {
	var v slog.Level
	if err := v.UnmarshalText([]byte(l.Level)); err != nil {
		return slog.LevelInfo
	}
	return v
}

// Default is the configuration of an empty file. Fleet.StateDir is empty in it,
// since it depends on who runs the program: see [DefaultStateDir].
func Default() *Config {
	return &Config{
		Fleet: Fleet{Name: "home"},
		Controller: Controller{
			Poll:            10 * time.Second,
			AddressRefresh:  60 * time.Second,
			AddressRetry:    5 * time.Second,
			AddressHold:     3,
			ReconcileBudget: 5 * time.Second,
			WorkersPerHost:  2,
			CreatesPerHost:  8,
			CreateTimeout:   10 * time.Minute,
			DeleteTimeout:   time.Minute,
			OrphanGrace:     10 * time.Minute,
			StartStopped:    true,
			ReplaceAfter:    10 * time.Minute,
		},
		Budget: Budget{PerHost: 10, PerPool: 5, Window: time.Hour},
		Link: Link{
			Ping:                 2 * time.Second,
			Silence:              1500 * time.Millisecond,
			SecondOpinion:        2 * time.Second,
			DialTimeout:          5 * time.Second,
			BackoffMin:           100 * time.Millisecond,
			BackoffMax:           3 * time.Second,
			BackoffMaxLate:       30 * time.Second,
			Slots:                4,
			AgentResponseTimeout: 2 * time.Second,
		},
		Health: Health{
			Interval:  5 * time.Second,
			Fast:      1 * time.Second,
			Slow:      30 * time.Second,
			SlowAfter: 5 * time.Minute,
			Timeout:   2 * time.Second,
			Rise:      2,
			Fall:      3,
			Brake:     10 * time.Second,
			Control:   true,
		},
		UI:  UI{Background: "auto"},
		Log: Log{Level: "info", Format: "text", Ring: 10000},
	}
}

func defaultHost() Host {
	return Host{
		Sources:         []Source{SourceLease, SourceAgent, SourceARP},
		Prefer:          IPv4,
		SetAgentTimeout: true,
	}
}

func defaultProxy() Proxy {
	return Proxy{Protocol: ProtocolHTTP, Pool: "default"}
}

func defaultTarget() Target {
	return Target{Status: []int{200}}
}
