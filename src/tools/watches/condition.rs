//! Conditions of watches: the kinds, their arguments, and their description in words.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use gatewren_base::sys::neutralise_line;
use gatewren_gate::http::{AllowedServers, HttpClient, ServerVerification};
use gatewren_host::backends::{ContainerRef, UnitName};

/// The shortest interval between two checks in seconds. A shorter one is refused.
pub const MIN_EVERY_S: u32 = 15;

/// The longest interval between two checks in seconds. A longer one is refused.
pub const MAX_EVERY_S: u32 = 3600;

/// The longest time in seconds that a condition must hold before the message. A longer one is refused.
pub const MAX_FOR_S: u32 = 86_400;

/// The maximum length of a target in bytes; a longer one is refused.
const MAX_TARGET: usize = 300;

/// A kind of condition: the watch fires when it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline, with = "String", description = "")]
#[schemars(extend("enum" = [
    "container", "unit", "port_closed", "port_open", "http", "disk", "temperature", "certificate", "backup",
]))]
pub enum WatchKind {
    /// A container is not running.
    Container,
    /// A systemd unit is failed or inactive.
    Unit,
    /// A TCP port accepts no connection.
    PortClosed,
    /// A TCP port accepts connections.
    PortOpen,
    /// A URL is not answered without an error in time.
    Http,
    /// A file system is too full.
    Disk,
    /// A temperature is too high.
    Temperature,
    /// A certificate expires soon.
    Certificate,
    /// The newest backup is too old.
    Backup,
}

/// A condition, and when it is checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchSpec {
    /// The kind of the condition.
    pub kind: WatchKind,
    /// The container that it is about; the host without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<ContainerRef>,
    /// The unit, port, URL, path, sensor or server, depending on the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The threshold: percent, degrees Celsius, days, hours, or seconds, depending on the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// The time in seconds that the condition must hold before the message.
    pub for_s: u32,
    /// The interval between two checks in seconds.
    pub every_s: u32,
    /// Whether it is not checked for now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
}

/// Why a condition is not valid, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidWatch(pub String);

impl fmt::Display for InvalidWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidWatch {}

/// The server of a condition about a port or a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedServer {
    /// Its name or address.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// The range and the default of a threshold.
struct LimitRange {
    least: u32,
    most: u32,
    usual: u32,
    unit: &'static str,
}

impl WatchKind {
    /// All kinds.
    pub const ALL: [Self; 9] = [
        Self::Container,
        Self::Unit,
        Self::PortClosed,
        Self::PortOpen,
        Self::Http,
        Self::Disk,
        Self::Temperature,
        Self::Certificate,
        Self::Backup,
    ];

    /// The name, as in the arguments.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Container => "container",
            Self::Unit => "unit",
            Self::PortClosed => "port_closed",
            Self::PortOpen => "port_open",
            Self::Http => "http",
            Self::Disk => "disk",
            Self::Temperature => "temperature",
            Self::Certificate => "certificate",
            Self::Backup => "backup",
        }
    }

    fn limit(self) -> Option<LimitRange> {
        let (least, most, usual, unit) = match self {
            Self::Http => (1, 10, 10, "seconds"),
            Self::Disk => (1, 100, 90, "percent"),
            Self::Temperature => (1, 150, 80, "degrees Celsius"),
            Self::Certificate => (1, 365, 14, "days"),
            Self::Backup => (1, 8760, 48, "hours"),
            Self::Container | Self::Unit | Self::PortClosed | Self::PortOpen => return None,
        };
        Some(LimitRange {
            least,
            most,
            usual,
            unit,
        })
    }
}

impl WatchSpec {
    /// Checks that the arguments fit the kind.
    ///
    /// # Errors
    /// The fault, and what the kind needs.
    pub fn check(&self) -> Result<(), InvalidWatch> {
        let invalid = |words: &str| Err(InvalidWatch(format!("{}: {words}", self.kind.as_str())));
        let target = self.target.as_deref();
        if target.is_some_and(|target| target.is_empty() || target.len() > MAX_TARGET) {
            return invalid("`target` must have 1 to 300 bytes");
        }
        match (self.kind.limit(), self.limit) {
            (None, Some(_)) => return invalid("this kind has no `limit`; leave it out"),
            (Some(range), Some(limit)) if !(range.least..=range.most).contains(&limit) => {
                let LimitRange {
                    least, most, unit, ..
                } = range;
                return invalid(&format!("`limit` must be {least} to {most} {unit}"));
            }
            _ => {}
        }
        match (self.kind, &self.container, target) {
            (WatchKind::Container, None, _) => invalid("`container` is required"),
            (WatchKind::Container, _, Some(_)) => invalid("it has no `target`; leave it out"),
            (WatchKind::Unit, _, None) => invalid("`target` is required: the unit's name"),
            (WatchKind::Unit, _, Some(unit)) => match UnitName::try_from(unit.to_owned()) {
                Ok(_) => Ok(()),
                Err(why) => invalid(&format!("`target` must be the name of a unit: {why}")),
            },
            (WatchKind::PortClosed | WatchKind::PortOpen, container, _) => {
                match (self.server(), container) {
                    (None, _) => {
                        invalid("`target` must be a port, or host:port without `container`")
                    }
                    (Some(server), Some(_)) if target != Some(&server.port.to_string()) => {
                        invalid("with `container`, `target` must be only the port")
                    }
                    _ => Ok(()),
                }
            }
            (WatchKind::Backup, None, None) | (WatchKind::Backup, Some(_), Some(_)) => {
                invalid("give either `container`, or in `target` the directory that is backed up")
            }
            (WatchKind::Container | WatchKind::Backup, ..) => Ok(()),
            (_, Some(_), _) => invalid("it is about the host; leave out `container`"),
            (WatchKind::Http, None, None) => invalid("`target` is required: the URL"),
            (WatchKind::Http, None, Some(url)) => match http_client(url) {
                Ok(_) => Ok(()),
                Err(why) => invalid(&why),
            },
            (WatchKind::Disk, None, Some(path)) if !path.starts_with('/') => {
                invalid("`target` must be the path where the file system is mounted, such as /")
            }
            (WatchKind::Certificate, None, Some(_)) if self.server().is_none() => {
                invalid("`target` must be host:port; without it, this server's own certificate")
            }
            (WatchKind::Disk | WatchKind::Temperature | WatchKind::Certificate, None, _) => Ok(()),
        }
    }

    /// The server that the target names: `host:port`, or only a port, which is one of this server.
    pub fn server(&self) -> Option<WatchedServer> {
        let target = self.target.as_deref()?;
        let (host, port) = match target.rsplit_once(':') {
            Some((host, port)) => (host, port),
            None => ("127.0.0.1", target),
        };
        let inner = host
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        let host = match inner {
            Some(address) => address.parse::<std::net::Ipv6Addr>().ok()?.to_string(),
            None if !host.is_empty() && host.chars().all(is_name) => host.to_owned(),
            None => return None,
        };
        let port: u16 = port.parse().ok().filter(|port| *port > 0)?;
        Some(WatchedServer { host, port })
    }

    /// The threshold, or the default of the kind; 0 for a kind without one.
    pub fn threshold(&self) -> u32 {
        let usual = self.kind.limit().map_or(0, |range| range.usual);
        self.limit.unwrap_or(usual)
    }

    /// The file system of a condition about a disk.
    pub fn mount_point(&self) -> &str {
        self.target.as_deref().unwrap_or("/")
    }

    /// The condition in words, as its agent and the owner read it.
    pub fn words(&self) -> String {
        self.describe(self.target.as_deref().unwrap_or_default())
    }

    /// What a watch of this condition does, in words, for the owner who decides about it.
    pub fn plan_words(&self) -> String {
        let seers = match &self.container {
            Some(container) => format!("the agents that may see container {container}"),
            None => "the agents that may see the host".to_owned(),
        };
        format!(
            "Check every {} s whether {}. Once that has held for {} s, notify the owner and {seers}, and again when it \
             ends. This goes on until the watch is deleted or its agent's access ends.",
            self.every_s,
            self.words(),
            self.for_s
        )
    }

    /// The condition in words for everyone who may read the notification: without the query of a URL, which may
    /// contain a secret.
    pub fn public_words(&self) -> String {
        let target = self.target.as_deref().unwrap_or_default();
        self.describe(target.split(['?', '#']).next().unwrap_or_default())
    }

    fn describe(&self, target: &str) -> String {
        let (target, limit) = (neutralise_line(target), self.threshold());
        let container = self.container.as_ref().map(ToString::to_string);
        let of = container
            .as_ref()
            .map_or_else(String::new, |name| format!(" of container {name}"));
        match (self.kind, container) {
            (WatchKind::Container, name) => {
                format!("container {} is not running", name.unwrap_or_default())
            }
            (WatchKind::Unit, _) => format!("unit {target}{of} is failed or inactive"),
            (WatchKind::PortClosed, _) => format!("TCP port {target}{of} is closed"),
            (WatchKind::PortOpen, _) => format!("TCP port {target}{of} is open"),
            (WatchKind::Http, _) => {
                format!("{target} does not answer without an error within {limit} s")
            }
            (WatchKind::Disk, _) => {
                format!(
                    "the file system {} is more than {limit} % full",
                    neutralise_line(self.mount_point())
                )
            }
            (WatchKind::Temperature, _) if target.is_empty() => {
                format!("a temperature is above {limit} degrees Celsius")
            }
            (WatchKind::Temperature, _) => {
                format!("the temperature of {target} is above {limit} degrees Celsius")
            }
            (WatchKind::Certificate, _) if target.is_empty() => {
                format!("this server's certificate expires in less than {limit} days")
            }
            (WatchKind::Certificate, _) => {
                format!("the certificate of {target} expires in less than {limit} days")
            }
            (WatchKind::Backup, Some(name)) => {
                format!("the newest backup of container {name} is older than {limit} hours")
            }
            (WatchKind::Backup, None) => {
                format!("the newest backup of {target} is older than {limit} hours")
            }
        }
    }
}

/// The client for a watched URL. Its servers are this host, the local network, and others over HTTPS; no address that
/// is reserved for a link, such as that of a cloud's metadata.
pub fn http_client(url: &str) -> Result<HttpClient, String> {
    let client = HttpClient::new(url, AllowedServers::Watched, &ServerVerification::Machine);
    client.map_err(|why| format!("`target` must be a URL: {why}"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn spec(mut fields: Value) -> WatchSpec {
        fields["for_s"] = json!(60);
        fields["every_s"] = json!(30);
        serde_json::from_value(fields).unwrap()
    }

    #[test]
    fn each_kind_accepts_its_own_arguments_and_says_what_it_needs() {
        for (fields, words) in ACCEPTED {
            let spec = spec(serde_json::from_str(fields).unwrap());
            assert_eq!(spec.check(), Ok(()), "{spec:?}");
            assert_eq!(spec.words(), words);
        }
    }

    #[test]
    fn other_arguments_are_refused_with_what_the_kind_needs() {
        for (fields, words) in REFUSED {
            let spec = spec(serde_json::from_str(fields).unwrap());
            let why = spec.check().unwrap_err().to_string();
            assert!(
                why.contains(words) && why.starts_with(spec.kind.as_str()),
                "{why}"
            );
        }
        let long = json!({ "kind": "disk", "target": "/".repeat(301) });
        let why = spec(long).check().unwrap_err().to_string();
        assert!(why.contains("1 to 300 bytes"), "{why}");
    }

    #[rustfmt::skip]
    const REFUSED: [(&str, &str); 17] = [
        (r#"{"kind":"container"}"#, "`container` is required"),
        (r#"{"kind":"container","container":"a","target":"x"}"#, "no `target`"),
        (r#"{"kind":"container","container":"a","limit":1}"#, "no `limit`"),
        (r#"{"kind":"unit"}"#, "the unit's name"),
        (r#"{"kind":"unit","target":"../x"}"#, "name of a unit"),
        (r#"{"kind":"port_closed"}"#, "must be a port"),
        (r#"{"kind":"port_closed","target":"0"}"#, "must be a port"),
        (r#"{"kind":"port_closed","target":"a b:1"}"#, "must be a port"),
        (r#"{"kind":"port_closed","container":"a","target":"10.0.0.1:80"}"#, "only the port"),
        (r#"{"kind":"http","target":"ftp://x/"}"#, "must be a URL"),
        (r#"{"kind":"http","container":"a","target":"http://x/"}"#, "leave out `container`"),
        (r#"{"kind":"http","target":"http://x/","limit":11}"#, "1 to 10 seconds"),
        (r#"{"kind":"disk","target":"srv"}"#, "is mounted"),
        (r#"{"kind":"disk","limit":101}"#, "1 to 100 percent"),
        (r#"{"kind":"certificate","target":"x"}"#, "host:port"),
        (r#"{"kind":"backup"}"#, "give either"),
        (r#"{"kind":"backup","container":"a","target":"/srv"}"#, "give either"),
    ];

    #[rustfmt::skip]
    const ACCEPTED: [(&str, &str); 10] = [
        (r#"{"kind":"container","container":"a"}"#, "container a is not running"),
        (r#"{"kind":"unit","target":"x.service"}"#, "unit x.service is failed or inactive"),
        (r#"{"kind":"unit","container":"a","target":"x.service"}"#, "unit x.service of container a is failed or inactive"),
        (r#"{"kind":"port_closed","container":"a","target":"80"}"#, "TCP port 80 of container a is closed"),
        (r#"{"kind":"port_open","target":"nas.lan:22"}"#, "TCP port nas.lan:22 is open"),
        (r#"{"kind":"port_closed","target":"[fd00::1]:22"}"#, "TCP port [fd00::1]:22 is closed"),
        (r#"{"kind":"disk"}"#, "the file system / is more than 90 % full"),
        (r#"{"kind":"temperature","limit":70}"#, "a temperature is above 70 degrees Celsius"),
        (r#"{"kind":"certificate"}"#, "this server's certificate expires in less than 14 days"),
        (r#"{"kind":"backup","container":"a"}"#, "the newest backup of container a is older than 48 hours"),
    ];

    #[test]
    fn a_notification_has_no_query_of_a_url() {
        let spec = spec(json!({"kind":"http","target":"http://nas.lan/x?token=t0p"}));
        assert!(spec.words().contains("t0p"));
        assert!(
            !spec.public_words().contains("t0p"),
            "{}",
            spec.public_words()
        );
    }
}
