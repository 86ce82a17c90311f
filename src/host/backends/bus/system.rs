//! The system bus for the other backends: calls share one connection, each subscription has its own.

use std::collections::HashMap;
use std::env;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::timeout;

use super::super::error::{BackendError, ErrorKind};
use super::connection::{BUS, Connection};
use super::error::BusError;
use super::message::{BusCall, BusMessage, BusObject};
use super::value::{Argument, BusValue};

/// The default address of the system bus (D-Bus specification, "System message bus").
const ADDRESS: &str = "unix:path=/var/run/dbus/system_bus_socket";

/// The environment variable that overrides it.
const ADDRESS_VARIABLE: &str = "DBUS_SYSTEM_BUS_ADDRESS";

/// The timeout for connecting, including authentication.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// The timeout of a call, as in D-Bus's own library: systemd answers no calls while it reloads all
/// unit files. A later answer is discarded.
const ANSWER_TIME: Duration = Duration::from_secs(25);

/// The interface for the properties of an object.
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";

/// The properties of one object by name.
pub type Properties = HashMap<String, BusValue>;

/// The system bus for calls; clones share one connection. It connects on first use and again after
/// a restart of the bus. Calls run one after another: a slow call waits for systemd, which also
/// answers one at a time.
#[derive(Debug, Clone, Default)]
pub struct SystemBus {
    /// The address; `None` for the default (or `DBUS_SYSTEM_BUS_ADDRESS`).
    address: Option<String>,
    connection: Arc<Mutex<Option<Connection>>>,
}

/// A subscription to signals with its own connection: a slow reader delays no calls, and its unread
/// signals wait in the bus. Dropping it ends the subscription.
#[derive(Debug)]
pub struct BusSignals {
    connection: Connection,
}

impl SystemBus {
    /// Returns the bus of this host, not connected yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a bus at another address, such as `unix:path=/run/other`.
    #[cfg(test)]
    pub fn at(address: &str) -> Self {
        Self {
            address: Some(address.to_owned()),
            ..Self::default()
        }
    }

    /// Calls `interface.member` of an object and returns the values of the answer.
    ///
    /// # Errors
    /// `Unavailable` when the bus or the service is not running, otherwise the service's error.
    pub async fn call(
        &self,
        object: BusObject<'_>,
        (interface, member): (&str, &str),
        arguments: &[Argument<'_>],
    ) -> Result<Vec<BusValue>, BackendError> {
        let call = BusCall {
            object,
            interface,
            member,
            arguments,
        };
        in_time(&call, self.called(&call)).await
    }

    /// Returns all properties of one interface of an object.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub async fn properties(
        &self,
        object: BusObject<'_>,
        interface: &str,
    ) -> Result<Properties, BackendError> {
        let asked = [Argument::Text(interface)];
        let answer = self.call(object, (PROPERTIES, "GetAll"), &asked).await?;
        let all = answer.into_iter().next().and_then(BusValue::into_items);
        let pairs = all.into_iter().flatten().filter_map(|pair| {
            let [name, value] = pair.into_items()?.try_into().ok()?;
            Some((name.into_text()?, value))
        });
        Ok(pairs.collect())
    }

    /// Returns one property of an object.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub async fn property(
        &self,
        object: BusObject<'_>,
        (interface, name): (&str, &str),
    ) -> Result<BusValue, BackendError> {
        let asked = [Argument::Text(interface), Argument::Text(name)];
        let answer = self.call(object, (PROPERTIES, "Get"), &asked).await?;
        let value = answer.into_iter().next();
        value.ok_or_else(|| failed(BusError::Malformed("a property without a value")))
    }

    /// Subscribes to every signal that matches one of `rules`, which have the syntax of the bus's
    /// `AddMatch`.
    ///
    /// # Errors
    /// `Unavailable` when the bus is not running.
    pub async fn listen(&self, rules: &[&str]) -> Result<BusSignals, BackendError> {
        let mut signals = BusSignals {
            connection: self.connect().await?,
        };
        for rule in rules {
            let rule = [Argument::Text(rule)];
            signals.call(BUS, (BUS.service, "AddMatch"), &rule).await?;
        }
        Ok(signals)
    }

    async fn called(&self, call: &BusCall<'_>) -> Result<Vec<BusValue>, BackendError> {
        let mut held = self.connection.lock().await;
        if held.as_mut().is_none_or(Connection::is_over) {
            *held = None;
        }
        let connection = match &mut *held {
            Some(connection) => connection,
            none => none.insert(self.connect().await?),
        };
        // The bus signals each connection its name.
        connection.forget_signals();
        let answer = connection.call(call).await;
        if !matches!(answer, Ok(_) | Err(BusError::Answer { .. })) {
            *held = None;
        }
        answer.map_err(failed)
    }

    async fn connect(&self) -> Result<Connection, BackendError> {
        let said = || env::var(ADDRESS_VARIABLE).ok();
        let address = self.address.clone().or_else(said);
        let opening = Connection::open(address.as_deref().unwrap_or(ADDRESS));
        match timeout(CONNECT_TIME, opening).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(cause)) => Err(gone(format!("the system bus cannot be reached: {cause}"))),
            Err(_) => Err(gone("the system bus does not answer".to_owned())),
        }
    }
}

impl BusSignals {
    /// Waits for the next signal. Cancel safe: no signal is lost.
    ///
    /// # Errors
    /// When the connection was closed; the caller must subscribe again.
    pub async fn next(&mut self) -> Result<BusMessage, BackendError> {
        self.connection.signal().await.map_err(failed)
    }

    /// Calls `interface.member` of an object over the connection of the signals, for services that
    /// serve a caller only as long as its connection is open.
    ///
    /// # Errors
    /// As [`SystemBus::call`].
    pub async fn call(
        &mut self,
        object: BusObject<'_>,
        (interface, member): (&str, &str),
        arguments: &[Argument<'_>],
    ) -> Result<(), BackendError> {
        let call = BusCall {
            object,
            interface,
            member,
            arguments,
        };
        let answered = async { self.connection.call(&call).await.map_err(failed) };
        in_time(&call, answered).await.map(drop)
    }
}

async fn in_time(
    call: &BusCall<'_>,
    answered: impl Future<Output = Result<Vec<BusValue>, BackendError>>,
) -> Result<Vec<BusValue>, BackendError> {
    timeout(ANSWER_TIME, answered).await.unwrap_or_else(|_| {
        let (service, member) = (call.object.service, call.member);
        Err(gone(format!("{service} did not answer {member} in time")))
    })
}

/// The bus or the service is currently not running.
fn gone(message: String) -> BackendError {
    BackendError {
        hint: Some("it needs systemd and dbus (apt install dbus)".to_owned()),
        retry: true,
        ..BackendError::new(ErrorKind::Unavailable, message)
    }
}

fn failed(cause: BusError) -> BackendError {
    let (name, words) = match cause {
        BusError::Answer { name, words } => (name, words),
        BusError::Gone(cause) => {
            return gone(format!(
                "the connection to the system bus was lost: {cause}"
            ));
        }
        BusError::Malformed(_) => {
            let words = format!("the system bus sent an invalid message: {cause}");
            return BackendError::new(ErrorKind::Failed, words);
        }
    };
    let words = words.unwrap_or_else(|| name.clone());
    let last = name.rsplit('.').next().unwrap_or_default();
    match last {
        "ServiceUnknown" | "NameHasNoOwner" | "NoReply" | "Disconnected" | "Timeout" => gone(words),
        "NoSuchUnit" | "UnknownObject" => BackendError::new(ErrorKind::NotFound, words),
        "AccessDenied" | "InvalidArgs" => BackendError::new(ErrorKind::Refused, words),
        _ => BackendError::new(ErrorKind::Failed, words),
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::io::{BufRead as _, BufReader, ErrorKind as IoError};
    use std::process::{Child, Command, Stdio};

    use gatewren_base::sys::{Scratch, skip};

    use super::*;

    const ABOUT: &str = "org.freedesktop.DBus";

    /// A bus that stops when this is dropped.
    struct Running(Child);

    impl Drop for Running {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    /// Starts a private bus and waits until it listens. `None` if no `dbus-daemon` is installed.
    fn started(scratch: &Scratch) -> Option<(Running, SystemBus)> {
        let address = format!("unix:path={}", scratch.join("bus").display());
        let settings = scratch.join("bus.conf");
        let words = format!(
            "<busconfig><type>session</type><listen>{address}</listen><auth>EXTERNAL</auth>\
             <policy context=\"default\"><allow send_destination=\"*\" eavesdrop=\"true\"/>\
             <allow eavesdrop=\"true\"/><allow own=\"*\"/></policy></busconfig>"
        );
        std::fs::write(&settings, words).unwrap();
        let mut command = Command::new("dbus-daemon");
        command
            .args(["--nofork", "--nopidfile", "--print-address"])
            .arg(format!("--config-file={}", settings.display()))
            .stdout(Stdio::piped());
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(cause) if cause.kind() == IoError::NotFound => {
                skip("dbus-daemon is not installed");
                return None;
            }
            Err(cause) => panic!("{cause}"),
        };
        let out = child.stdout.take().unwrap();
        let running = Running(child);
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line).unwrap();
        assert!(line.starts_with("unix:path="), "{line}");
        Some((running, SystemBus::at(&address)))
    }

    async fn owner_of(bus: &SystemBus, name: &str) -> Result<Vec<BusValue>, BackendError> {
        let asked = [Argument::Text(name)];
        bus.call(BUS, (ABOUT, "GetNameOwner"), &asked).await
    }

    #[tokio::test]
    async fn a_bus_answers_and_tells() {
        let scratch = Scratch::new();
        let Some((_running, bus)) = started(&scratch) else {
            return;
        };
        let owner = owner_of(&bus, ABOUT).await.unwrap();
        assert_eq!(owner, [BusValue::Text(ABOUT.to_owned())]);
        let nobody = owner_of(&bus, "no.such.name").await.unwrap_err();
        assert_eq!(nobody.kind, ErrorKind::Unavailable);
        assert!(nobody.message.contains("no.such.name"), "{nobody}");
        let unknown = bus.call(BUS, (ABOUT, "Nothing"), &[]).await.unwrap_err();
        assert_eq!(unknown.kind, ErrorKind::Failed);

        let all = bus.properties(BUS, ABOUT).await.unwrap();
        let one = bus.property(BUS, (ABOUT, "Interfaces")).await.unwrap();
        assert_eq!(all.get("Interfaces"), Some(&one));
        assert!(one.into_items().is_some_and(|list| !list.is_empty()));

        let rule = "type='signal',member='NameOwnerChanged'";
        let mut signals = bus.listen(&[rule]).await.unwrap();
        // Every new connection gets a name, which is signalled.
        let other = SystemBus::at(bus.address.as_deref().unwrap());
        owner_of(&other, ABOUT).await.unwrap();
        loop {
            let signal = signals.next().await.unwrap();
            if signal.member.as_deref() == Some("NameOwnerChanged") {
                assert_eq!(signal.body.len(), 3);
                break;
            }
        }
    }

    #[tokio::test]
    async fn an_answer_that_nobody_waits_for_is_not_the_next_ones() {
        let scratch = Scratch::new();
        let Some((_running, bus)) = started(&scratch) else {
            return;
        };
        for _ in 0..20 {
            tokio::select! {
                biased;
                answer = bus.call(BUS, (ABOUT, "GetId"), &[]) => drop(answer.unwrap()),
                () = ready(()) => {}
            }
            let owner = owner_of(&bus, ABOUT).await.unwrap();
            assert_eq!(owner, [BusValue::Text(ABOUT.to_owned())]);
        }
        let (one, other) = tokio::join!(
            owner_of(&bus, ABOUT),
            bus.call(BUS, (ABOUT, "NameHasOwner"), &[Argument::Text("no.such")]),
        );
        assert_eq!(one.unwrap(), [BusValue::Text(ABOUT.to_owned())]);
        assert_eq!(other.unwrap(), [BusValue::Bool(false)]);
    }

    #[tokio::test]
    async fn a_bus_that_went_away_is_found_again() {
        let scratch = Scratch::new();
        let Some((running, bus)) = started(&scratch) else {
            return;
        };
        owner_of(&bus, ABOUT).await.unwrap();
        let mut signals = bus.listen(&[]).await.unwrap();
        drop(running);
        let gone = owner_of(&bus, ABOUT).await.unwrap_err();
        assert!(gone.retry && gone.kind == ErrorKind::Unavailable, "{gone}");
        let ended = loop {
            // The first signal is the name that the bus gave the connection.
            if let Err(cause) = signals.next().await {
                break cause;
            }
        };
        assert!(
            ended.retry && ended.kind == ErrorKind::Unavailable,
            "{ended}"
        );
        let Some(_running) = started(&scratch) else {
            return;
        };
        owner_of(&bus, ABOUT).await.unwrap();
    }
}
