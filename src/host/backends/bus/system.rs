//! The system bus for the other backends: calls share one connection, each subscription has its own.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use std::{env, fmt, io};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;
use tokio::sync::Mutex;
use tokio::time::timeout;
use zbus::connection::Builder;
use zbus::export::futures_core::Stream as _;
use zbus::message::Type as MessageType;
use zbus::wire::{DynamicType, OwnedVariant, Type};
use zbus::{Connection, DBusError as _, Error, Message, MessageStream};

use super::super::error::{BackendError, ErrorKind};
use super::address::sockets;
use super::socket::BusSocket;

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

/// The bus itself, as a service.
const BUS: BusObject<'static> = BusObject {
    service: "org.freedesktop.DBus",
    path: "/org/freedesktop/DBus",
    interface: "org.freedesktop.DBus",
};

/// The properties of one object by name.
pub type Properties = HashMap<String, OwnedVariant>;

/// An interface of an object on the bus.
#[derive(Debug, Clone, Copy)]
pub struct BusObject<'a> {
    /// The service's well-known name.
    pub service: &'a str,
    /// The object's path.
    pub path: &'a str,
    /// The interface.
    pub interface: &'a str,
}

/// The system bus for calls; clones share one connection. It connects on first use and again after
/// a restart of the bus.
#[derive(Debug, Clone, Default)]
pub struct SystemBus {
    /// The address; `None` for the default (or `DBUS_SYSTEM_BUS_ADDRESS`).
    address: Option<String>,
    connection: Arc<Mutex<Option<Connection>>>,
}

/// A subscription to signals with its own connection: a slow reader delays no calls. 64 unread
/// signals are queued, further ones wait in the bus. Dropping it ends the subscription.
#[derive(Debug)]
pub struct BusSignals {
    messages: MessageStream,
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

    /// Calls a method of an object and returns the values of the answer.
    ///
    /// # Errors
    /// `Unavailable` when the bus or the service is not running, otherwise the service's error.
    pub async fn call<A, R>(
        &self,
        object: BusObject<'_>,
        method: &str,
        arguments: &A,
    ) -> Result<R, BackendError>
    where
        A: Serialize + DynamicType,
        R: DeserializeOwned + Type,
    {
        let answer = call(&self.connection().await?, object, method, arguments).await?;
        Ok(answer.body().deserialize()?)
    }

    /// Returns all properties of an object.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub async fn properties(&self, object: BusObject<'_>) -> Result<Properties, BackendError> {
        let interface = object.interface;
        let object = BusObject {
            interface: PROPERTIES,
            ..object
        };
        self.call(object, "GetAll", &interface).await
    }

    /// Returns one property of an object.
    ///
    /// # Errors
    /// As [`Self::call`]; `Failed` when it has another type.
    pub async fn property<T: TryFrom<OwnedVariant>>(
        &self,
        object: BusObject<'_>,
        name: &str,
    ) -> Result<T, BackendError> {
        let arguments = (object.interface, name);
        let object = BusObject {
            interface: PROPERTIES,
            ..object
        };
        let value: OwnedVariant = self.call(object, "Get", &arguments).await?;
        value.try_into().map_err(|_| Error::IncorrectType.into())
    }

    /// Subscribes to every signal that matches one of `rules`, which have the syntax of the bus's
    /// `AddMatch`. `method` of `object` makes the service send them; it may serve a caller only as
    /// long as the connection is open. Earlier signals are dropped.
    ///
    /// # Errors
    /// `Unavailable` when the bus is not running.
    pub async fn subscribe(
        &self,
        rules: &[&str],
        object: BusObject<'_>,
        method: &str,
    ) -> Result<BusSignals, BackendError> {
        let connection = self.connect().await?;
        for rule in rules {
            call(&connection, BUS, "AddMatch", rule).await?;
        }
        call(&connection, object, method, &()).await?;
        // Last: behind a full queue of signals no answer would be received.
        let messages = MessageStream::from(connection);
        Ok(BusSignals { messages })
    }

    async fn connection(&self) -> Result<Connection, BackendError> {
        let mut shared = self.connection.lock().await;
        if let Some(connection) = shared.as_ref().filter(|open| !open.is_closed()) {
            return Ok(connection.clone());
        }
        Ok(shared.insert(self.connect().await?).clone())
    }

    async fn connect(&self) -> Result<Connection, BackendError> {
        let from_environment = || env::var(ADDRESS_VARIABLE).ok();
        let address = self.address.clone().or_else(from_environment);
        let opening = open(address.as_deref().unwrap_or(ADDRESS));
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
    pub async fn next(&mut self) -> Result<Message, BackendError> {
        loop {
            let message = poll_fn(|cx| Pin::new(&mut self.messages).poll_next(cx)).await;
            let closed = || Error::from(io::Error::from(io::ErrorKind::UnexpectedEof));
            let message = message.unwrap_or_else(|| Err(closed()))?;
            if message.message_type() == MessageType::Signal {
                return Ok(message);
            }
        }
    }
}

/// Connects as this process's user to the first socket of an address that accepts.
async fn open(address: &str) -> Result<Connection, String> {
    let mut last = "its address names no socket".to_owned();
    for path in sockets(address) {
        match UnixStream::connect(&path).await {
            Ok(stream) => {
                let opened = Builder::socket(BusSocket(stream)).build().await;
                return opened.map_err(|cause| cause.to_string());
            }
            Err(cause) => last = format!("{}: {cause}", path.display()),
        }
    }
    Err(last)
}

async fn call<A: Serialize + DynamicType>(
    connection: &Connection,
    object: BusObject<'_>,
    method: &str,
    arguments: &A,
) -> Result<Message, BackendError> {
    let (service, interface) = (Some(object.service), Some(object.interface));
    let answer = connection.call_method(service, object.path, interface, method, arguments);
    match timeout(ANSWER_TIME, answer).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(gone(format!(
            "{} did not answer {method} in time",
            object.service
        ))),
    }
}

/// The bus or the service is currently not running.
fn gone(message: String) -> BackendError {
    BackendError {
        hint: Some("it needs systemd and dbus (apt install dbus)".to_owned()),
        retry: true,
        ..BackendError::new(ErrorKind::Unavailable, message)
    }
}

impl From<Error> for BackendError {
    fn from(cause: Error) -> Self {
        let invalid = |cause: &dyn fmt::Display| {
            let words = format!("the system bus sent an invalid message: {cause}");
            Self::new(ErrorKind::Failed, words)
        };
        let (name, words) = match &cause {
            Error::MethodError(name, words, _) => (name.to_string(), words.as_deref()),
            Error::FDO(error) => (error.name().to_string(), error.description()),
            Error::InputOutput(cause) if cause.kind() == io::ErrorKind::InvalidData => {
                return invalid(cause);
            }
            Error::InputOutput(cause) => {
                return gone(format!(
                    "the connection to the system bus was lost: {cause}"
                ));
            }
            _ => return invalid(&cause),
        };
        let words = words.filter(|words| !words.is_empty());
        let words = words.unwrap_or(&name).to_owned();
        let last = name.rsplit('.').next().unwrap_or_default();
        match last {
            "ServiceUnknown" | "NameHasNoOwner" | "NoReply" | "Disconnected" | "Timeout" => {
                gone(words)
            }
            "NoSuchUnit" | "UnknownObject" => Self::new(ErrorKind::NotFound, words),
            "AccessDenied" | "InvalidArgs" => Self::new(ErrorKind::Refused, words),
            _ => Self::new(ErrorKind::Failed, words),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::io::{BufRead as _, BufReader, ErrorKind as IoError};
    use std::process::{Child, Command, Stdio};

    use gatewren_base::sys::{Scratch, skip};
    use tokio::net::UnixListener;
    use zbus::Guid;

    use super::super::socket::MAX_BYTES;
    use super::*;

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

    async fn owner_of(bus: &SystemBus, name: &str) -> Result<String, BackendError> {
        bus.call(BUS, "GetNameOwner", &name).await
    }

    #[tokio::test]
    async fn a_bus_answers_and_signals() {
        let scratch = Scratch::new();
        let Some((_running, bus)) = started(&scratch) else {
            return;
        };
        assert_eq!(owner_of(&bus, BUS.service).await.unwrap(), BUS.service);
        let nobody = owner_of(&bus, "no.such.name").await.unwrap_err();
        assert_eq!(nobody.kind, ErrorKind::Unavailable);
        assert!(nobody.message.contains("no.such.name"), "{nobody}");
        let unknown: Result<(), _> = bus.call(BUS, "Nothing", &()).await;
        assert_eq!(unknown.unwrap_err().kind, ErrorKind::Failed);
        // An answer of another type fails, and does not end the connection.
        let number: Result<u32, _> = bus.call(BUS, "GetId", &()).await;
        assert_eq!(number.unwrap_err().kind, ErrorKind::Failed);

        let all = bus.properties(BUS).await.unwrap();
        let one: OwnedVariant = bus.property(BUS, "Interfaces").await.unwrap();
        assert_eq!(all.get("Interfaces"), Some(&one));
        assert!(bus.property::<u32>(BUS, "Interfaces").await.is_err());

        let rule = "type='signal',member='NameOwnerChanged'";
        let mut signals = bus.subscribe(&[rule], BUS, "GetId").await.unwrap();
        // Every new connection gets a name, which is signalled.
        let other = SystemBus::at(bus.address.as_deref().unwrap());
        owner_of(&other, BUS.service).await.unwrap();
        let signal = signals.next().await.unwrap();
        assert_eq!(signal.header().member().unwrap(), "NameOwnerChanged");
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
                answer = bus.call::<_, String>(BUS, "GetId", &()) => drop(answer.unwrap()),
                () = ready(()) => {}
            }
            assert_eq!(owner_of(&bus, BUS.service).await.unwrap(), BUS.service);
        }
        let (one, other) = tokio::join!(
            owner_of(&bus, BUS.service),
            bus.call::<_, bool>(BUS, "NameHasOwner", &"no.such"),
        );
        assert_eq!(one.unwrap(), BUS.service);
        assert!(!other.unwrap());
    }

    #[tokio::test]
    async fn a_bus_that_went_away_is_found_again() {
        let scratch = Scratch::new();
        let Some((running, bus)) = started(&scratch) else {
            return;
        };
        owner_of(&bus, BUS.service).await.unwrap();
        let mut signals = bus.subscribe(&[], BUS, "GetId").await.unwrap();
        drop(running);
        let gone = owner_of(&bus, BUS.service).await.unwrap_err();
        assert!(gone.retry && gone.kind == ErrorKind::Unavailable, "{gone}");
        let ended = signals.next().await.unwrap_err();
        assert!(
            ended.retry && ended.kind == ErrorKind::Unavailable,
            "{ended}"
        );
        let Some(_running) = started(&scratch) else {
            return;
        };
        owner_of(&bus, BUS.service).await.unwrap();
    }

    /// A bus that authenticates a client and answers its first call, and nothing after that.
    async fn opened(scratch: &Scratch) -> (SystemBus, Connection) {
        let path = scratch.join("bus");
        let listener = UnixListener::bind(&path).unwrap();
        let bus = SystemBus::at(&format!("unix:path={}", path.display()));
        let serve = async {
            let (stream, _) = listener.accept().await.unwrap();
            let server = Builder::unix_stream(stream.into_std().unwrap())
                .server(Guid::generate())
                .p2p()
                .build()
                .await
                .unwrap();
            let mut calls = MessageStream::from(&server);
            let hello = poll_fn(|cx| Pin::new(&mut calls).poll_next(cx)).await;
            let hello = hello.unwrap().unwrap();
            server.reply(&hello.header(), &":1.1").await.unwrap();
            server
        };
        let (connected, server) = tokio::join!(bus.connection(), serve);
        drop(connected.unwrap());
        (bus, server)
    }

    #[tokio::test]
    async fn a_call_without_an_answer_ends_in_time() {
        let scratch = Scratch::new();
        let (bus, _server) = opened(&scratch).await;
        tokio::time::pause();
        let late = owner_of(&bus, BUS.service).await.unwrap_err();
        assert!(late.retry && late.kind == ErrorKind::Unavailable, "{late}");
        assert!(late.message.contains("GetNameOwner in time"), "{late}");
    }

    #[tokio::test]
    async fn a_message_that_is_too_long_ends_the_connection() {
        let scratch = Scratch::new();
        let (bus, server) = opened(&scratch).await;
        let long = vec![0_u8; MAX_BYTES];
        let send = server.emit_signal(None::<&str>, "/", "a.b", "Long", &long);
        let refused = tokio::select! {
            refused = owner_of(&bus, BUS.service) => refused.unwrap_err(),
            received = send => panic!("{received:?}"),
        };
        assert_eq!(refused.kind, ErrorKind::Failed, "{refused}");
        assert!(refused.message.contains("too long"), "{refused}");
        let connection = bus.connection.lock().await;
        assert!(connection.as_ref().unwrap().is_closed());
    }
}
