//! The system bus for the rest of the room: calls over one connection, signals each over one of their own.

use std::collections::HashMap;
use std::env;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::timeout;

use super::super::error::{BackendError, ErrorKind};
use super::connection::{BUS, Connection};
use super::error::BusError;
use super::message::{Call, Message, Object};
use super::value::{Argument, Value};

/// Where the system has the bus, if the environment does not say otherwise (D-Bus specification, "System message
/// bus").
const ADDRESS: &str = "unix:path=/var/run/dbus/system_bus_socket";

/// What says otherwise.
const ADDRESS_VARIABLE: &str = "DBUS_SYSTEM_BUS_ADDRESS";

/// How long connecting may take, the greeting included.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// How long an answer may take, as long as D-Bus's own library waits: systemd answers nobody while it reads all
/// files again. One that comes later is not waited for.
const ANSWER_TIME: Duration = Duration::from_secs(25);

/// What every object with properties offers.
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";

/// Properties of one object by name.
pub type Properties = HashMap<String, Value>;

/// The bus for calls; a clone is a pointer to the same connection. It connects when it is first used, and
/// again after the bus was restarted. One call follows the other: what waits long, waits for systemd, which
/// answers one after the other too.
#[derive(Debug, Clone, Default)]
pub struct SystemBus {
    /// Where it is; nothing for where the system has it (`DBUS_SYSTEM_BUS_ADDRESS` may say).
    address: Option<String>,
    connection: Arc<Mutex<Option<Connection>>>,
}

/// Signals from now on, over a connection of their own: a reader that is slow holds up no calls, and what
/// it has not read waits in the bus. Dropping it ends the subscription.
#[derive(Debug)]
pub struct Signals {
    connection: Connection,
}

impl SystemBus {
    /// The bus of this machine, not connected yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A bus elsewhere, such as `unix:path=/run/other`.
    #[cfg(test)]
    pub fn at(address: &str) -> Self {
        Self {
            address: Some(address.to_owned()),
            ..Self::default()
        }
    }

    /// Calls `interface.member` of an object, and returns what the answer holds.
    ///
    /// # Errors
    /// `Unavailable` when bus or service are not there, otherwise what the service says.
    pub async fn call(
        &self,
        object: Object<'_>,
        (interface, member): (&str, &str),
        arguments: &[Argument<'_>],
    ) -> Result<Vec<Value>, BackendError> {
        let call = Call {
            object,
            interface,
            member,
            arguments,
        };
        in_time(&call, self.called(&call)).await
    }

    /// All properties of one interface of an object.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub async fn properties(
        &self,
        object: Object<'_>,
        interface: &str,
    ) -> Result<Properties, BackendError> {
        let asked = [Argument::Text(interface)];
        let answer = self.call(object, (PROPERTIES, "GetAll"), &asked).await?;
        let all = answer.into_iter().next().and_then(Value::into_items);
        let pairs = all.into_iter().flatten().filter_map(|pair| {
            let [name, value] = pair.into_items()?.try_into().ok()?;
            Some((name.into_text()?, value))
        });
        Ok(pairs.collect())
    }

    /// One property of an object.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub async fn property(
        &self,
        object: Object<'_>,
        (interface, name): (&str, &str),
    ) -> Result<Value, BackendError> {
        let asked = [Argument::Text(interface), Argument::Text(name)];
        let answer = self.call(object, (PROPERTIES, "Get"), &asked).await?;
        let value = answer.into_iter().next();
        value.ok_or_else(|| failed(BusError::Malformed("a property without a value")))
    }

    /// Every signal from now on that fits one of `rules`, as the bus's `AddMatch` takes them.
    ///
    /// # Errors
    /// `Unavailable` when the bus is not there.
    pub async fn listen(&self, rules: &[&str]) -> Result<Signals, BackendError> {
        let mut signals = Signals {
            connection: self.connect().await?,
        };
        for rule in rules {
            let rule = [Argument::Text(rule)];
            signals.call(BUS, (BUS.service, "AddMatch"), &rule).await?;
        }
        Ok(signals)
    }

    async fn called(&self, call: &Call<'_>) -> Result<Vec<Value>, BackendError> {
        let mut held = self.connection.lock().await;
        if held.as_mut().is_none_or(Connection::is_over) {
            *held = None;
        }
        let connection = match &mut *held {
            Some(connection) => connection,
            none => none.insert(self.connect().await?),
        };
        // The bus tells each connection its name.
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

impl Signals {
    /// Waits for the next signal. Safe to drop while it waits: no signal is lost.
    ///
    /// # Errors
    /// When the connection ended; listen anew then.
    pub async fn next(&mut self) -> Result<Message, BackendError> {
        self.connection.signal().await.map_err(failed)
    }

    /// Calls `interface.member` of an object over the connection of the signals, for services that serve
    /// whoever has asked for it as long as its connection lives.
    ///
    /// # Errors
    /// As [`SystemBus::call`].
    pub async fn call(
        &mut self,
        object: Object<'_>,
        (interface, member): (&str, &str),
        arguments: &[Argument<'_>],
    ) -> Result<(), BackendError> {
        let call = Call {
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
    call: &Call<'_>,
    answered: impl Future<Output = Result<Vec<Value>, BackendError>>,
) -> Result<Vec<Value>, BackendError> {
    timeout(ANSWER_TIME, answered).await.unwrap_or_else(|_| {
        let (service, member) = (call.object.service, call.member);
        Err(gone(format!("{service} did not answer {member} in time")))
    })
}

/// Bus or service are not there at present.
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
        BusError::Gone(cause) => return gone(format!("the system bus is gone: {cause}")),
        BusError::Malformed(_) => {
            let words = format!("the system bus is not understood: {cause}");
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

    use crate::sys::{Scratch, skip};

    use super::*;

    const ABOUT: &str = "org.freedesktop.DBus";

    /// A bus that ends with its owner.
    struct Running(Child);

    impl Drop for Running {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    /// Starts a bus of our own and waits until it listens. Nothing where there is none to start.
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

    async fn owner_of(bus: &SystemBus, name: &str) -> Result<Vec<Value>, BackendError> {
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
        assert_eq!(owner, [Value::Text(ABOUT.to_owned())]);
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
        // Whoever comes gets a name.
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
            assert_eq!(owner, [Value::Text(ABOUT.to_owned())]);
        }
        let (one, other) = tokio::join!(
            owner_of(&bus, ABOUT),
            bus.call(BUS, (ABOUT, "NameHasOwner"), &[Argument::Text("no.such")]),
        );
        assert_eq!(one.unwrap(), [Value::Text(ABOUT.to_owned())]);
        assert_eq!(other.unwrap(), [Value::Bool(false)]);
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
            // The name that the bus gave the connection comes first.
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
