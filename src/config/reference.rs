//! Every key there is: section, name, field, shape and help. The samples in `etc/` are printed from here.

use std::time::Duration;

use super::edge::{HeaderName, Keys, Text};
use super::helper_policy::HelperPolicy;
use super::key::{Key, commented, key, sample};
use super::reading::Family;
use super::settings::Settings;
use super::shape::{
    AbsolutePath, Count, Flag, HOSTS, NETWORKS, ORIGINS, SOCKETS, Shape as _, Size, Time, UNITS,
    Word,
};
use super::{channel_keys, space_keys};

const INTRODUCTION: &str = "\
Settings of gatewren's front. Every value below is the default: uncomment a line to change it.
Files in conf.d/*.toml beside this one are read after it, in the order of their names.
`gatewren check` says what is wrong before a restart does. `systemctl reload gatewren` has all of them read
again: what was changed counts from the next request on and nothing is cut off, unless it says below that
a new value waits for a restart. Where anything is wrong, nothing is changed.";

/// A second, a minute and a day: the bounds of the times below.
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);
const DAY: Duration = Duration::from_hours(24);

/// The keys of the front's settings, in the order of the sample.
#[rustfmt::skip]
pub(super) const SETTINGS: &[Key<Settings>] = &[
    key!("", "listen", listen, SOCKETS,
        "Addresses and ports to listen on. As a service the port is that of gatewren.socket: then the default\n\
         opens nothing more, and another value opens what it names beside it.", restart),
    key!("", "names", names, HOSTS,
        "Host names of this box, for its certificate and the list of allowed hosts.\n\
         An empty list means the name that the system has, alone and with .local."),
    key!("", "state_dir", state_dir, AbsolutePath,
        "Where the databases and the certificates are kept.", restart),

    key!("tls", "mode", tls.mode, Word,
        "\"own\": a certificate authority of our own, made at the first start in state_dir/tls;\n\
         clients trust state_dir/tls/ca.pem. \"files\": the two files below."),
    key!("tls", "cert", tls.cert, AbsolutePath,
        "Certificate chain as PEM, the server's own first. Only with mode = \"files\"."),
    key!("tls", "key", tls.key, AbsolutePath,
        "Private key as PEM, readable by the user gatewren and by nobody else."),

    key!("access", "owner_on_mcp", access.owner_on_mcp, Flag,
        "Whether the owner, signed in at /login, is let in at /mcp as well: as an agent with the policy\n\
         admin and the whole box."),
    key!("access", "allowed_hosts", access.allowed_hosts, HOSTS,
        "Hosts that requests may name beside the box's own names and addresses, such as the name\n\
         of a reverse proxy."),
    key!("access", "allowed_origins", access.allowed_origins, ORIGINS,
        "Web pages that may call us beside our own, such as \"https://chat.lan\"."),
    key!("access", "required_header", access.required_header, HeaderName,
        "A header that each request of an agent must carry beside its token, whatever its value, such as\n\
         one that a reverse proxy adds. Empty means none."),
    key!("access", "http_sse", access.http_sse, Flag,
        "Whether HTTP+SSE, the transport of 2024-11-05, is served too, at /sse and /message. It is\n\
         deprecated: turn it on only for a client that has no other."),
    key!("access", "login_idle", access.login_idle, Time(SECOND..=365 * DAY),
        "Whoever has signed in at /login, the owner or an agent, is signed out after so long without a\n\
         request or an open stream."),
    key!("access", "login_max", access.login_max, Time(SECOND..=365 * DAY),
        "The same however much it is used."),
    key!("access", "hsts", access.hsts, Time(Duration::ZERO..=365 * DAY),
        "How long browsers use TLS alone for this host name, on every port, after a visit to the owner's page\n\
         (HSTS). If another service on this name uses plain HTTP, such as http://box.lan:8096, set \"0s\"; browsers\n\
         drop the rule at their next visit to the page. IP addresses and localhost are exempt."),

    key!("oauth", "enabled", oauth.enabled, Flag,
        "Whether programs that hold no token, such as connectors of chat services, may ask the owner for\n\
         access over OAuth 2.1 and come in at /connect/mcp. What they were given ends when this is turned off."),
    key!("oauth", "local_clients", oauth.local_clients, Flag,
        "A program may say who it is by the address of a document (https://). Whether such documents are\n\
         fetched from this box and the local network too, and not from the public Internet alone."),

    key!("edge_jwt", "header", edge_jwt.header, HeaderName,
        "A proxy with an identity provider in front of gatewren puts a signed token (JWT) into this header\n\
         of every request, such as Cf-Access-Jwt-Assertion. Once set, a request without a good one is\n\
         refused; an agent's token is needed as well. All of the four, or none."),
    key!("edge_jwt", "jwks", edge_jwt.jwks, Keys,
        "The provider's public keys (JWKS): an absolute path, or https://. RS256 and ES256 count."),
    key!("edge_jwt", "audience", edge_jwt.audience, Text,
        "For whom the token must be made (aud)."),
    key!("edge_jwt", "issuer", edge_jwt.issuer, Text,
        "Who must have made it (iss)."),
    key!("edge_jwt", "refresh", edge_jwt.refresh, Time(SECOND..=DAY),
        "How often the keys are fetched. A token of an unknown key has them fetched sooner, at most ten\n\
         times as often; keys that cannot be fetched any more count for twelve times as long."),

    key!("limits", "max_connections", limits.max_connections, Count(1..=65_536),
        "Connections at once; further ones wait to be accepted. From three quarters on each new one closes an\n\
         old one without a valid token, and has 2 seconds for its handshake and its headers."),
    key!("limits", "unauthenticated_per_address", limits.unauthenticated_per_address, Count(1..=65_536),
        "Connections from one address, or from one IPv6 network of 64 bits, on which no request came with a\n\
         valid token or with the owner's session. At it the oldest of them is closed for each new one."),
    key!("limits", "unauthenticated_per_proxy", limits.unauthenticated_per_proxy, Count(1..=65_536),
        "The same from one address of this box itself (loopback), or of a trusted proxy."),
    key!("limits", "trusted_proxies", limits.trusted_proxies, NETWORKS,
        "Addresses that many clients share: those of a reverse proxy, a tunnel or a bridge. Connections from\n\
         there have the limit above, and are never refused for what other connections from there did."),
    key!("limits", "handshake_timeout", limits.handshake_timeout, Time(SECOND..=MINUTE),
        "Until the TLS handshake is done."),
    key!("limits", "header_timeout", limits.header_timeout, Time(SECOND..=5 * MINUTE),
        "Until the headers of a request are there."),
    key!("limits", "body_limit", limits.body_limit, Size(4 << 10..=64 << 20),
        "The largest body of a request."),
    key!("limits", "body_timeout", limits.body_timeout, Time(SECOND..=10 * MINUTE),
        "Until the body of a request is there."),
    key!("limits", "max_streams_per_agent", limits.max_streams_per_agent, Count(1..=4096),
        "Open event streams of one agent."),
    key!("limits", "max_streams", limits.max_streams, Count(1..=65_536),
        "Open event streams of all agents."),
    key!("limits", "session_idle", limits.session_idle, Time(SECOND..=365 * DAY),
        "A session (before 2026-07-28) ends after so long without a request or an open stream, also\n\
         across restarts; its client must then begin a new one."),
    key!("limits", "session_unused", limits.session_unused, Time(SECOND..=365 * DAY),
        "The same for a session that was never used after it began."),
    key!("limits", "max_sessions_per_agent", limits.max_sessions_per_agent, Count(1..=65_536),
        "Sessions of one agent; at this number a new one ends the one that has rested longest."),
    key!("limits", "max_sessions", limits.max_sessions, Count(1..=65_536),
        "Sessions of all agents; the same."),
    key!("limits", "drain", limits.drain, Time(SECOND..=5 * MINUTE),
        "How long a stop waits for calls that are running."),
    key!("limits", "update_interval", limits.update_interval, Time(Duration::ZERO..=MINUTE),
        "A client hears of a resource that keeps changing at most so often. The first change after quiet\n\
         is told at once."),
    key!("limits", "heartbeat", limits.heartbeat, Time(Duration::ZERO..=MINUTE),
        "How often a client that asked for progress is told that its call still runs, for as long as the\n\
         call reports none itself. \"0s\" turns it off."),
    key!("limits", "address_rate", limits.address_rate, Count(1..=100_000),
        "Requests a second without a good token from one address; those with one do not count."),
    key!("limits", "address_burst", limits.address_burst, Count(1..=100_000),
        "How many of those may come at once."),
    key!("limits", "agent_rate", limits.agent_rate, Count(1..=1_000_000),
        "Calls a minute of one agent."),
    key!("limits", "agent_calls", limits.agent_calls, Count(1..=4096),
        "Calls of one agent at once. Calls of tools that only read have as many places of their own, so that an\n\
         agent with running commands or waiting calls can still read. Over HTTP a call too many waits up to 5 s\n\
         for a place; then it is refused."),
    key!("limits", "agent_messages", limits.agent_messages, Count(1..=4096),
        "Messages an hour of one agent to the owner's channels, delivered or not."),

    key!("tools", "dialect", tools.dialect, Word,
        "\"portable\": tools and resources are listed by names that every client takes. \"startos\": by those that\n\
         StartOS has for them, with its parameters, for a client that was made for it; tools that it does not have\n\
         keep ours. All can be called by either name.", restart),

    key!("tasks", "after", tasks.after, Time(Duration::ZERO..=5 * MINUTE),
        "A long command becomes a task after this time, if its client knows of tasks. Clients that do\n\
         not wait on; many give up after a minute."),
    key!("tasks", "ttl", tasks.ttl, Time(SECOND..=30 * DAY),
        "How long a task is kept with its result, counted from its making. One that still runs then\n\
         is ended."),
    key!("tasks", "per_agent", tasks.per_agent, Count(1..=4096),
        "Tasks of one agent that are kept at once. A call that finds no room is answered when it ends."),
    key!("tasks", "total", tasks.total, Count(1..=65_536),
        "Tasks of all agents that are kept at once; each may hold a result of 256 KiB."),

    key!("inbox", "expires", inbox.expires, Time(SECOND..=30 * DAY),
        "How long what an agent proposes waits for the owner. After it the change is begun no more, also\n\
         when it was approved."),
    key!("inbox", "per_agent", inbox.per_agent, Count(1..=4096),
        "Changes of one agent that may wait, or run, at once; at it, proposals are refused."),
    key!("inbox", "total", inbox.total, Count(1..=65_536),
        "The same of all agents; each may hold arguments of 64 KiB, and later a result of 256 KiB."),

    key!("state", "keep", state.keep, Time(SECOND..=3650 * DAY),
        "How long the log of the state is kept. It is trimmed each time that 4096 revisions or 4 MiB of\n\
         patches have come, so that up to twice as many stay beside those."),
    key!("state", "keep_revisions", state.keep_revisions, Count(1..=100_000_000),
        "How many revisions are kept at most, in the same way."),

    key!("audit", "keep", audit.keep, Time(SECOND..=3650 * DAY),
        "How long the record of calls is kept. Once an hour the oldest calls are trimmed behind a sealed\n\
         checkpoint, so that `gatewren audit verify` still proves the rest; `gatewren audit export` keeps them."),
    key!("audit", "keep_rows", audit.keep_rows, Count(1_000..=100_000_000),
        "How many rows are kept at most, in the same way; a call has two, of some 700 bytes together."),

    key!("metrics", "loopback", metrics.loopback, Flag,
        "Whether /metrics is told without a token to whoever is on this box itself: who comes from 127.0.0.1\n\
         or ::1, calls it localhost or by such an address, and through no proxy that says so. Leave it off where a\n\
         reverse proxy or a tunnel runs on this box: some say nothing of who is behind them. Everybody else\n\
         shows the token that `gatewren metrics token` prints."),

    key!("lxc", "lxcpath", lxc.lxcpath, AbsolutePath,
        "Where the containers are; empty means where LXC's own settings say.", restart),

    key!("observer", "units", observer.units, UNITS,
        "systemd units that the state tells of beside those that failed or are enabled, such as\n\
         \"docker-*.service\"; * stands for any run of characters, ? for one."),

    key!("helper", "socket", helper.socket, AbsolutePath,
        "The socket of the root helper.", restart),

    key!("log", "level", log.level, Word,
        "The least serious line that is logged: error, warn, info, debug or trace."),
];

/// The sections whose names the owner chooses.
pub(super) const FAMILIES: &[Family<Settings>] = &[channel_keys::FAMILY, space_keys::FAMILY];

/// The front's sample, as it stands in `etc/gatewren.toml`.
pub fn settings_sample() -> String {
    let sample = sample(INTRODUCTION, SETTINGS);
    let channels = commented(channel_keys::EXAMPLE).join("\n");
    let spaces = commented(space_keys::EXAMPLE).join("\n");
    format!("{sample}\n{channels}\n\n{spaces}\n")
}

/// The helper's sample, as it stands in `etc/helper.toml`.
pub fn helper_sample() -> String {
    sample(HelperPolicy::INTRODUCTION, HelperPolicy::KEYS)
}
