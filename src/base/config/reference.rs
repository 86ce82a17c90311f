//! The reference of all keys: section, name, field, shape and help. It generates the samples in `etc/`.

use std::time::Duration;

use super::edge_jwt::{HeaderName, KeyLocationShape, OneLineText};
use super::health_path::HealthPath;
use super::helper_policy::HelperPolicy;
use super::instance_name::InstanceName;
use super::key::{Key, comment_lines, key, sample};
use super::reading::SectionFamily;
use super::settings::Settings;
use super::shape::{
    AbsolutePath, Count, Flag, HOSTS, NETWORKS, ORIGINS, SOCKETS, Shape as _, Size, Time, UNITS,
    Word,
};
use super::{channel_keys, space_keys};

const INTRODUCTION: &str = "\
Settings of gatewren's front. Every value below is the default: uncomment a line to change it.
Files in conf.d/*.toml are read after this one, in the order of their names. `gatewren check` validates all of them.
`systemctl reload gatewren` applies them to new requests, without interrupting anything; keys that need a restart are
marked below. If anything is invalid, nothing is changed.";

/// A second, a minute and a day, for the ranges of times below.
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);
const DAY: Duration = Duration::from_hours(24);

/// The keys of the front's settings, in the order of the sample.
#[rustfmt::skip]
pub(super) const SETTINGS: &[Key<Settings>] = &[
    key!("", "listen", listen, SOCKETS,
        "Addresses and ports to listen on. As a service, gatewren.socket has the port: the default opens nothing\n\
         more, and any other value is opened in addition.", restart),
    key!("", "names", names, HOSTS,
        "Host names of this server, for its certificate and the list of allowed hosts. An empty list means the\n\
         system's host name, with and without .local."),
    key!("", "state_dir", state_dir, AbsolutePath,
        "Directory of the databases and the certificates.", restart),

    key!("tls", "mode", tls.mode, Word,
        "\"own\": a certificate authority of this server, created at the first start in state_dir/tls; clients\n\
         trust state_dir/tls/ca.pem. \"files\": the two files below."),
    key!("tls", "cert", tls.cert, AbsolutePath,
        "Certificate chain as PEM, the server's own first. Only with mode = \"files\"."),
    key!("tls", "key", tls.key, AbsolutePath,
        "Private key as PEM, readable by the user gatewren only."),

    key!("access", "owner_on_mcp", access.owner_on_mcp, Flag,
        "Accept the owner's cookie from /login at /mcp too, as an agent with the policy admin and the whole\n\
         server."),
    key!("access", "allowed_hosts", access.allowed_hosts, HOSTS,
        "Host names that requests may use in addition to the server's own names and addresses, such as the name\n\
         of a reverse proxy."),
    key!("access", "allowed_origins", access.allowed_origins, ORIGINS,
        "Origins of web pages that may call the server in addition to its own, such as \"https://chat.lan\". They may\n\
         also use the cookie of an agent from /login, which browsers send for pages of the same site only, such as\n\
         another port of this host; the owner's cookie stays with the owner's page."),
    key!("access", "required_header", access.required_header, HeaderName,
        "A header that each request of an agent must have in addition to its token, with any value, such as a\n\
         header that a reverse proxy adds. Empty means none."),
    key!("access", "required_header_value_file", access.required_header_value_file, AbsolutePath,
        "A file with the value that this header must have: one word, which a reverse proxy sends too. The file must\n\
         belong to root or gatewren, and other users must not be able to read it: chgrp gatewren FILE && chmod 640\n\
         FILE. A reload reads it again."),
    key!("access", "health_path", access.health_path, HealthPath,
        "Where the server answers {\"status\":\"ok\"} to anyone, for monitors and proxies, such as \"/healthz\". With\n\
         another path, /health is not found."),
    key!("access", "health_version", access.health_version, Flag,
        "Add the version of gatewren to that answer. Anyone who reaches the port can then read it."),
    key!("access", "streaming", access.streaming, Flag,
        "Answer at /mcp with event streams where a call has notifications, questions or a long wait. With false each\n\
         POST is answered with one JSON object, for proxies that hold back streams: then there is no progress, no\n\
         subscription, and no form in sessions."),
    key!("access", "http_sse", access.http_sse, Flag,
        "Serve HTTP+SSE, the transport of 2024-11-05, at /sse and /message. It is deprecated: enable it only for\n\
         a client that supports nothing else."),
    key!("access", "login_idle", access.login_idle, Time(SECOND..=365 * DAY),
        "A login at /login, of the owner or of an agent, expires after this time without a request or an open\n\
         stream."),
    key!("access", "login_max", access.login_max, Time(SECOND..=365 * DAY),
        "A login expires after this time in any case."),
    key!("access", "hsts", access.hsts, Time(Duration::ZERO..=365 * DAY),
        "How long browsers use only TLS for this host name, on every port, after a visit to the owner's page\n\
         (HSTS). If another service on this name uses plain HTTP, such as http://box.lan:8096, set \"0s\"; browsers\n\
         drop the rule at their next visit to the page. IP addresses and localhost are exempt."),

    key!("oauth", "enabled", oauth.enabled, Flag,
        "Programs without a token, such as the connectors of chat services, may ask the owner for access over\n\
         OAuth 2.1, at /connect/mcp. Disabling it revokes their access."),
    key!("oauth", "local_clients", oauth.local_clients, Flag,
        "A program may identify itself by the address of a document (https://). With true, such documents are\n\
         also fetched from this server and the local network, not only from the public Internet."),

    key!("edge_jwt", "header", edge_jwt.header, HeaderName,
        "A proxy with an identity provider in front of gatewren adds a signed token (JWT) to each request, in\n\
         this header, such as Cf-Access-Jwt-Assertion. If set, requests without a valid one are rejected; the\n\
         agent's token is required as well. Set all four keys or none."),
    key!("edge_jwt", "jwks", edge_jwt.jwks, KeyLocationShape,
        "The provider's public keys (JWKS): an absolute path, or https://. RS256 and ES256 are supported."),
    key!("edge_jwt", "audience", edge_jwt.audience, OneLineText,
        "Required audience of the token (aud)."),
    key!("edge_jwt", "issuer", edge_jwt.issuer, OneLineText,
        "Required issuer of the token (iss)."),
    key!("edge_jwt", "refresh", edge_jwt.refresh, Time(SECOND..=DAY),
        "Interval of fetching the keys. A token with an unknown key triggers an earlier fetch, at most ten times\n\
         as often. Keys that can no longer be fetched stay valid for twelve intervals."),

    key!("limits", "max_connections", limits.max_connections, Count(1..=65_536),
        "Open connections; further ones wait. From three quarters of it on, each new connection closes an old one\n\
         without a valid token, and has 2 seconds for its handshake and its headers."),
    key!("limits", "unauthenticated_per_address", limits.unauthenticated_per_address, Count(1..=65_536),
        "Open connections without a valid token or owner's session, from one address or one IPv6 network of 64\n\
         bits. At the limit each new one closes the oldest one."),
    key!("limits", "unauthenticated_per_proxy", limits.unauthenticated_per_proxy, Count(1..=65_536),
        "The same limit for each address of this server itself (loopback), and for each trusted proxy."),
    key!("limits", "trusted_proxies", limits.trusted_proxies, NETWORKS,
        "Addresses that many clients share, such as a reverse proxy, a tunnel or a bridge. They have the limit\n\
         above, and no penalties."),
    key!("limits", "handshake_timeout", limits.handshake_timeout, Time(SECOND..=MINUTE),
        "Timeout of the TLS handshake."),
    key!("limits", "header_timeout", limits.header_timeout, Time(SECOND..=5 * MINUTE),
        "Timeout of a request's headers."),
    key!("limits", "body_limit", limits.body_limit, Size(4 << 10..=64 << 20),
        "The largest body of a request."),
    key!("limits", "body_timeout", limits.body_timeout, Time(SECOND..=10 * MINUTE),
        "Timeout of a request's body."),
    key!("limits", "max_streams_per_agent", limits.max_streams_per_agent, Count(1..=4096),
        "Open event streams of one agent."),
    key!("limits", "max_streams", limits.max_streams, Count(1..=65_536),
        "Open event streams of all agents."),
    key!("limits", "session_idle", limits.session_idle, Time(SECOND..=365 * DAY),
        "A session (before 2026-07-28) expires after this time without a request or an open stream, also across\n\
         restarts."),
    key!("limits", "session_unused", limits.session_unused, Time(SECOND..=365 * DAY),
        "The same for a session that has not been used since it began."),
    key!("limits", "max_sessions_per_agent", limits.max_sessions_per_agent, Count(1..=65_536),
        "Sessions of one agent; at the limit a new session ends the one that has been idle longest."),
    key!("limits", "max_sessions", limits.max_sessions, Count(1..=65_536),
        "Sessions of all agents; the same."),
    key!("limits", "drain", limits.drain, Time(SECOND..=5 * MINUTE),
        "How long a stop waits for running calls."),
    key!("limits", "confirm_timeout", limits.confirm_timeout, Time(SECOND..=10 * MINUTE),
        "How long a confirmation, or another form, waits for the user of the client. A later answer lets nothing run."),
    key!("limits", "update_interval", limits.update_interval, Time(Duration::ZERO..=MINUTE),
        "Minimum interval between two updates of one resource to one client. The first change after a pause is\n\
         sent at once."),
    key!("limits", "heartbeat", limits.heartbeat, Time(Duration::ZERO..=MINUTE),
        "Interval of progress notifications to a client that asked for progress, while the call itself reports\n\
         none. \"0s\" turns them off."),
    key!("limits", "address_rate", limits.address_rate, Count(1..=100_000),
        "Requests per second without a valid token from one address."),
    key!("limits", "address_burst", limits.address_burst, Count(1..=100_000),
        "Burst of such requests."),
    key!("limits", "agent_rate", limits.agent_rate, Count(1..=1_000_000),
        "Calls per minute of one agent."),
    key!("limits", "agent_calls", limits.agent_calls, Count(1..=4096),
        "Concurrent calls of one agent. Calls of read-only tools have the same number of places of their own, so\n\
         that an agent with running commands or waiting calls can still read. Over HTTP a call above the limit\n\
         waits up to 5 s for a place, then it is rejected."),
    key!("limits", "max_calls", limits.max_calls, Count(1..=65_536),
        "Calls of all agents at once, and the same number of calls that only read. A call above it waits for up to\n\
         5 seconds, then it is refused and counted in the metrics as too_many_calls_of_all."),
    key!("limits", "agent_messages", limits.agent_messages, Count(1..=4096),
        "Messages per hour of one agent to the owner's channels, delivered or not."),

    key!("tools", "dialect", tools.dialect, Word,
        "\"portable\": tools and resources have names that every client accepts. \"startos\": they have the names and\n\
         parameters of StartOS, for a client that was made for it; other tools keep their names. Both names work\n\
         in calls.", restart),

    key!("tasks", "after", tasks.after, Time(Duration::ZERO..=5 * MINUTE),
        "A long command becomes a task after this time if its client supports tasks. Other clients keep waiting;\n\
         many have a timeout of a minute."),
    key!("tasks", "ttl", tasks.ttl, Time(SECOND..=30 * DAY),
        "A task is kept with its result for this time after its creation. A task that still runs then is killed."),
    key!("tasks", "per_agent", tasks.per_agent, Count(1..=4096),
        "Tasks of one agent that are kept. At the limit a call is answered when it ends."),
    key!("tasks", "total", tasks.total, Count(1..=65_536),
        "Tasks of all agents that are kept; each may have a result of 256 KiB."),

    key!("inbox", "expires", inbox.expires, Time(SECOND..=30 * DAY),
        "A change that an agent proposed expires after this time, also if it was approved but has not started."),
    key!("inbox", "per_agent", inbox.per_agent, Count(1..=4096),
        "Changes of one agent that wait or run; at the limit proposals are rejected."),
    key!("inbox", "total", inbox.total, Count(1..=65_536),
        "The same for all agents; each may have arguments of 64 KiB, and later a result of 256 KiB."),

    key!("state", "keep", state.keep, Time(SECOND..=3650 * DAY),
        "How long the log of the state is kept. It is trimmed after each 4096 revisions or 4 MiB of patches, so\n\
         that up to twice as much may remain."),
    key!("state", "keep_revisions", state.keep_revisions, Count(1..=100_000_000),
        "The most revisions that are kept, trimmed in the same way."),

    key!("audit", "keep", audit.keep, Time(SECOND..=3650 * DAY),
        "How long calls are kept in the audit. Once an hour the oldest calls are trimmed behind a sealed\n\
         checkpoint; `gatewren audit verify` still proves the rest. `gatewren audit export` saves them."),
    key!("audit", "keep_rows", audit.keep_rows, Count(1_000..=100_000_000),
        "The most rows that are kept, trimmed in the same way; a call that only reads has one of about 450 bytes,\n\
         any other has two."),

    key!("metrics", "loopback", metrics.loopback, Flag,
        "Serve /metrics without a token to clients on this server: from 127.0.0.1 or ::1, with localhost or such\n\
         an address as Host, and without headers of a proxy. Leave it off if a reverse proxy or a tunnel runs on\n\
         this server, because some do not report the client behind them. All other clients need the token of\n\
         `gatewren metrics token`."),

    key!("lxc", "lxcpath", lxc.lxcpath, AbsolutePath,
        "Directory of the containers; empty means LXC's own setting.", restart),

    key!("observer", "units", observer.units, UNITS,
        "systemd units in the state in addition to those that failed or are enabled, such as \"docker-*.service\";\n\
         * matches any characters, ? matches one."),

    key!("sessions", "instance", sessions.instance, InstanceName,
        "Name of this front, such as \"a\", if several serve this server: the ids of its sessions begin with it, as in\n\
         \"a-...\", so that a balancer sends a session to the front that opened it. Ids without a name stay valid.\n\
         `gatewren serve --instance` overrides it. Empty means none.", restart),

    key!("workers", "observer", workers.observer, Flag,
        "Background work that can be switched off, for tests and for another program that does it. The audit, the\n\
         expiry of tokens and the end of commands cannot. This key: keep the state and the usage history up to date.", restart),
    key!("workers", "notifier", workers.notifier, Flag,
        "Notify the owner of requests, expiring tokens and failures, and send that to the channels.", restart),
    key!("workers", "sweeper", workers.sweeper, Flag,
        "Delete expired tasks, and trim the audit.", restart),
    key!("workers", "jobs", workers.jobs, Flag,
        "Run schedules, and check watches.", restart),

    key!("helper", "socket", helper.socket, AbsolutePath,
        "The socket of the root helper.", restart),

    key!("log", "level", log.level, Word,
        "Minimum level of the log: error, warn, info, debug or trace."),
];

/// The families of sections with names that the owner chooses.
pub(super) const FAMILIES: &[SectionFamily<Settings>] = &[channel_keys::FAMILY, space_keys::FAMILY];

/// Returns the front's sample, which is `etc/gatewren.toml`.
pub fn settings_sample() -> String {
    let sample = sample(INTRODUCTION, SETTINGS);
    let channels = comment_lines(channel_keys::EXAMPLE).join("\n");
    let spaces = comment_lines(space_keys::EXAMPLE).join("\n");
    format!("{sample}\n{channels}\n\n{spaces}\n")
}

/// Returns the helper's sample, which is `etc/helper.toml`.
pub fn helper_sample() -> String {
    sample(HelperPolicy::INTRODUCTION, HelperPolicy::KEYS)
}
