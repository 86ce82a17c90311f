//! Checks a condition once: reads the state document, the host, or another machine.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use serde_json::Value;
use tokio::time::timeout;

use super::condition::{WatchKind, WatchSpec, WatchedServer, http_client};
use super::phase::WatchReading;
use gatewren_base::config::Reach;
use gatewren_base::sys::{moment_ms, neutralise_line, now_ms, shorten};
use gatewren_gate::http::{
    CertificateFacts, HttpClientError, TlsServer, shown_for, watched_addresses,
};
use gatewren_host::backends::{
    BackendError, Backups, ContainerRef, ErrorKind, Host, Lxc, Network, Storage, SystemdUnits,
    UnitName,
};
use gatewren_store::state::{Pointer, State};

/// The timeout of one check. A check that takes longer has no result.
const CHECK_TIME: Duration = Duration::from_secs(25);

/// The timeout of one connection to a port.
const CONNECT_TIME: Duration = Duration::from_secs(3);

/// The maximum length in characters of what a check found; a longer text is cut.
const MAX_SEEN: usize = 200;

/// A day in seconds.
const DAY_S: i64 = 86_400;

/// Everything that checks read.
pub struct WatchProbes {
    /// The host as a document.
    pub state: State,
    /// The containers.
    pub lxc: Lxc,
    /// The units of the host and of containers.
    pub units: SystemdUnits,
    /// The network.
    pub network: Network,
    /// The host.
    pub host: Host,
    /// The backups.
    pub backups: Backups,
    /// The disks, for the notifications that need no watch.
    pub storage: Storage,
    /// This server's certificate; `None` without TLS.
    pub certificate: Option<Arc<TlsServer>>,
}

impl WatchProbes {
    /// Checks that the container of a condition exists and is within reach.
    ///
    /// # Errors
    /// The same for a missing container and for one that is out of reach.
    pub async fn check_container(
        &self,
        container: &ContainerRef,
        reach: &Reach,
        reference: &str,
    ) -> Result<(), BackendError> {
        let view = self.lxc.view_for(reach, reference);
        view.status(container).await.map(drop)
    }

    /// Checks a condition once.
    pub async fn read(&self, spec: &WatchSpec, reach: &Reach, reference: &str) -> WatchReading {
        let reading = match spec.kind {
            WatchKind::Container => Ok(self.container(spec)),
            WatchKind::Unit => Ok(timed(self.unit(spec, reach, reference)).await),
            WatchKind::PortClosed | WatchKind::PortOpen => {
                let open = timed_result(self.is_open(spec, reach, reference)).await;
                open.map(|found| found.reading(spec.kind == WatchKind::PortOpen))
            }
            WatchKind::Http => Ok(timed(http(spec)).await),
            WatchKind::Disk => Ok(timed(self.disk(spec)).await),
            WatchKind::Temperature => Ok(timed(self.temperature(spec)).await),
            WatchKind::Certificate => timed_result(self.certificate(spec)).await,
            WatchKind::Backup => timed_result(self.backup(spec, reach, reference)).await,
        };
        let cut = |text: String| shorten(&neutralise_line(&text), MAX_SEEN);
        match reading {
            Ok(WatchReading::Holds(text)) => WatchReading::Holds(cut(text)),
            Ok(WatchReading::Clear(text)) => WatchReading::Clear(cut(text)),
            Ok(WatchReading::Unknown(why) | WatchReading::Stopped(why)) | Err(why) => {
                WatchReading::Unknown(cut(why))
            }
        }
    }

    /// The entry of a container in the state document.
    fn entry(&self, container: &ContainerRef) -> Result<Option<Value>, String> {
        let document = self.state.document();
        let available = Pointer::root()
            .child("public")
            .child("observer")
            .child("containers")
            .child("available");
        if available.get(&document.root) == Some(&Value::Bool(false)) {
            return Err("the containers cannot be observed at the moment".to_owned());
        }
        let place = Pointer::root().child("public").child("packageData");
        Ok(place.child(container.as_str()).get(&document.root).cloned())
    }

    fn container(&self, spec: &WatchSpec) -> WatchReading {
        let Some(name) = &spec.container else {
            return WatchReading::Unknown("the watch names no container".to_owned());
        };
        match self.entry(name) {
            Err(why) => WatchReading::Unknown(why),
            Ok(None) => WatchReading::Holds("the container does not exist".to_owned()),
            Ok(Some(entry)) => match entry.get("status").and_then(Value::as_str) {
                Some("running") => WatchReading::Clear("it is running".to_owned()),
                Some(status) => WatchReading::Holds(format!("it is {status}")),
                None => WatchReading::Unknown("its state is unknown".to_owned()),
            },
        }
    }

    async fn unit(&self, spec: &WatchSpec, reach: &Reach, reference: &str) -> WatchReading {
        let unit = spec.target.clone().unwrap_or_default();
        let Ok(unit) = UnitName::try_from(unit) else {
            return WatchReading::Unknown("the watch names no unit".to_owned());
        };
        let view = self.units.view_for(reach, reference);
        match view.status(spec.container.as_ref(), &unit).await {
            Ok(status) => {
                let active = status.unit.line.active;
                let found = format!("it is {active}");
                match active.as_str() {
                    "failed" | "inactive" => WatchReading::Holds(found),
                    _ => WatchReading::Clear(found),
                }
            }
            Err(error) => match error.kind {
                ErrorKind::NotFound | ErrorKind::NotRunning => WatchReading::Holds(error.message),
                _ => WatchReading::Unknown(error.message),
            },
        }
    }

    async fn is_open(
        &self,
        spec: &WatchSpec,
        reach: &Reach,
        reference: &str,
    ) -> Result<PortFinding, String> {
        let server = spec.server().ok_or("the watch names no port")?;
        let Some(name) = &spec.container else {
            return self.connect(&server, reference).await;
        };
        let Some(entry) = self.entry(name)? else {
            return Ok(PortFinding::closed("the container does not exist"));
        };
        if entry.get("status").and_then(Value::as_str) != Some("running") {
            return Ok(PortFinding::closed("the container is not running"));
        }
        // Root in a container may give itself any address, so an agent without access to the host causes no
        // connection: the container's own list of sockets is read instead.
        let address = entry.get("addresses").and_then(own_address);
        match address.filter(|_| reach.host()) {
            Some(address) => {
                let host = address.to_string();
                let port = server.port;
                self.connect(&WatchedServer { host, port }, reference).await
            }
            None => Ok(listens(&entry, server.port)),
        }
    }

    async fn connect(
        &self,
        server: &WatchedServer,
        reference: &str,
    ) -> Result<PortFinding, String> {
        let WatchedServer { host, port } = server;
        let answer = self
            .network
            .check_port(host, *port, CONNECT_TIME, reference);
        let answer = match answer.await {
            Ok(answer) => answer,
            Err(error) if error.kind == ErrorKind::NotFound => {
                return Ok(PortFinding::closed(&error.message));
            }
            Err(error) => return Err(error.message),
        };
        let tried = answer.tried.last();
        let words = tried.map(|one| format!("{}: {}", one.address, one.state.as_str()));
        Ok(PortFinding {
            is_open: answer.open,
            found: words.unwrap_or_default(),
        })
    }

    async fn disk(&self, spec: &WatchSpec) -> WatchReading {
        self.host.learn().await;
        let path = spec.mount_point();
        let mounts = self.host.facts().mounts.into_iter();
        let mut found = mounts.filter_map(|(point, mount)| (point.path == path).then_some(mount));
        match found.next().flatten() {
            Some(mount) => {
                let words = format!("{path} is {:.0} % full", mount.used_percent);
                over(mount.used_percent, spec.threshold(), words)
            }
            None => WatchReading::Unknown(format!(
                "no local file system is mounted at {path}; server_metrics lists them"
            )),
        }
    }

    async fn temperature(&self, spec: &WatchSpec) -> WatchReading {
        self.host.learn().await;
        let sensors = self.host.facts().temperatures.into_iter();
        let wanted = sensors.filter(|one| spec.target.as_ref().is_none_or(|t| *t == one.sensor));
        let hottest = wanted.max_by(|a, b| a.celsius.total_cmp(&b.celsius));
        match hottest {
            Some(one) => {
                let words = format!("{}: {:.0} degrees Celsius", one.sensor, one.celsius);
                over(one.celsius, spec.threshold(), words)
            }
            None => WatchReading::Unknown(
                "there is no such sensor; server_metrics lists those that there are".to_owned(),
            ),
        }
    }

    async fn certificate(&self, spec: &WatchSpec) -> Result<WatchReading, String> {
        let expires_s = match spec.server() {
            None => match &self.certificate {
                Some(tls) => tls.expires(),
                None => return Err("this server uses no TLS".to_owned()),
            },
            Some(server) => match expiry(&server).await {
                Ok(expires_s) => expires_s,
                Err(why) => return Err(format!("the certificate cannot be fetched: {why}")),
            },
        };
        let now_s = i64::try_from(now_ms() / 1000).unwrap_or(i64::MAX);
        let days = (expires_s.saturating_sub(now_s)).div_euclid(DAY_S);
        let words = if days < 0 {
            "it has expired".to_owned()
        } else {
            format!("it expires in {days} days")
        };
        Ok(if days < i64::from(spec.threshold()) {
            WatchReading::Holds(words)
        } else {
            WatchReading::Clear(words)
        })
    }

    async fn backup(
        &self,
        spec: &WatchSpec,
        reach: &Reach,
        reference: &str,
    ) -> Result<WatchReading, String> {
        let view = self.backups.view_for(reach, reference);
        let list = view.list(None).await.map_err(|error| error.message)?;
        let is_of = |backup: &&gatewren_host::backends::Backup| match &spec.container {
            Some(name) => backup.backup.container() == Some(name),
            None => backup.path.is_some() && backup.path == spec.target,
        };
        let newest = list.backups.iter().filter(is_of);
        let newest = newest.filter_map(|backup| moment_ms(&backup.made)).max();
        let limit_ms = u64::from(spec.threshold()) * 3_600_000;
        let age = newest.map(|made| now_ms().saturating_sub(made));
        let words = match age {
            Some(age) => format!("the newest is {} hours old", age / 3_600_000),
            None => "there is none".to_owned(),
        };
        match (age, list.unseen.first()) {
            (Some(age), _) if age <= limit_ms => Ok(WatchReading::Clear(words)),
            // A newer one may be on a target that cannot be read now.
            (_, Some(unseen)) => Err(format!(
                "the backup target {} cannot be read",
                unseen.target
            )),
            _ => Ok(WatchReading::Holds(words)),
        }
    }
}

/// Whether a port is open.
struct PortFinding {
    is_open: bool,
    found: String,
}

impl PortFinding {
    fn closed(found: &str) -> Self {
        Self {
            is_open: false,
            found: found.to_owned(),
        }
    }

    fn reading(self, open_holds: bool) -> WatchReading {
        if self.is_open == open_holds {
            WatchReading::Holds(self.found)
        } else {
            WatchReading::Clear(self.found)
        }
    }
}

/// Whether a container listens on a TCP port, by the list of its sockets.
fn listens(entry: &Value, port: u16) -> PortFinding {
    let ports = entry.get("ports").and_then(Value::as_array);
    let is_open = ports.into_iter().flatten().any(|one| {
        one.get("protocol").and_then(Value::as_str) == Some("tcp")
            && one.get("port").and_then(Value::as_u64) == Some(port.into())
    });
    let found = if is_open {
        "a program of the container listens on it"
    } else {
        "no program of the container listens on it"
    };
    PortFinding {
        is_open,
        found: found.to_owned(),
    }
}

/// The first address of a container that can be an address of its own: one of a local network.
fn own_address(addresses: &Value) -> Option<IpAddr> {
    let addresses = addresses.as_array()?.iter();
    let mut parsed = addresses.filter_map(|one| one.as_str()?.parse().ok());
    parsed.find(|address: &IpAddr| match address {
        IpAddr::V4(v4) => v4.is_private(),
        IpAddr::V6(v6) => v6.is_unique_local(),
    })
}

fn over(value: f64, threshold: u32, words: String) -> WatchReading {
    if value > f64::from(threshold) {
        WatchReading::Holds(words)
    } else {
        WatchReading::Clear(words)
    }
}

/// Requests a URL, and reads no body.
async fn http(spec: &WatchSpec) -> WatchReading {
    let url = spec.target.as_deref().unwrap_or_default();
    let client = match http_client(url) {
        Ok(client) => client,
        Err(why) => return WatchReading::Unknown(why),
    };
    let wait = Duration::from_secs(spec.threshold().into());
    let answer = timeout(wait, client.ask(Request::default(), None)).await;
    match answer {
        Ok(Ok(_)) => WatchReading::Clear("it answers".to_owned()),
        Ok(Err(HttpClientError::Status(status))) if status.as_u16() < 400 => {
            WatchReading::Clear(format!("it answers {}", status.as_u16()))
        }
        Ok(Err(HttpClientError::Status(status))) => {
            WatchReading::Holds(format!("it answers {}", status.as_u16()))
        }
        Ok(Err(HttpClientError::Address(why))) => WatchReading::Unknown(why.to_owned()),
        Ok(Err(why)) => WatchReading::Holds(why.to_string()),
        Err(_) => WatchReading::Holds(format!("no answer within {} s", wait.as_secs())),
    }
}

/// The end of the validity of the certificate that a server presents, in seconds since 1970.
async fn expiry(server: &WatchedServer) -> Result<i64, String> {
    let WatchedServer { host, port } = server;
    let addresses = watched_addresses(host, *port);
    let addresses = addresses.await.map_err(|error| error.to_string())?;
    let address = addresses.first().copied().ok_or("it has no address")?;
    let host = host.clone();
    let shown = tokio::task::spawn_blocking(move || shown_for(&host, address)).await;
    let der = shown
        .map_err(|e| e.to_string())?
        .map_err(|e| e.to_string())?;
    let facts = CertificateFacts::of(&der).ok_or("it is not a certificate")?;
    Ok(facts.until())
}

async fn timed(check: impl Future<Output = WatchReading>) -> WatchReading {
    let late = |_| WatchReading::Unknown(late_words());
    timeout(CHECK_TIME, check).await.unwrap_or_else(late)
}

async fn timed_result<T>(check: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let checked = timeout(CHECK_TIME, check).await;
    checked.unwrap_or_else(|_| Err(late_words()))
}

fn late_words() -> String {
    format!("the check did not end within {} s", CHECK_TIME.as_secs())
}
