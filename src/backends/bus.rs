//! The system bus (D-Bus), on which systemd and its kin answer and say what changes.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream as _;
use serde::Serialize;
use tokio::sync::Mutex;
use tokio::time::timeout;
use zbus::zvariant::{DynamicDeserialize, DynamicType, OwnedValue};
use zbus::{Connection, Message, MessageStream, connection};

use super::error::{BackendError, ErrorKind};

/// How long connecting may take, the greeting included.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// How long an answer may take; one that comes later is not waited for.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// The bus itself, as a service.
const BUS: Object<'static> = Object {
    service: "org.freedesktop.DBus",
    path: "/org/freedesktop/DBus",
};

/// What every object with properties offers.
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";

/// An object of a service on the bus.
#[derive(Debug, Clone, Copy)]
pub struct Object<'a> {
    /// The service's well-known name.
    pub service: &'a str,
    /// The object's path.
    pub path: &'a str,
}

/// Properties of one object by name.
pub type Properties = HashMap<String, OwnedValue>;

/// The bus for calls; a clone is a pointer to the same connection. It connects when it is first used, and
/// again after the bus was restarted.
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
    stream: MessageStream,
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

    /// Calls `interface.member` of an object.
    ///
    /// # Errors
    /// `Unavailable` when bus or service are not there, otherwise what the service says.
    pub async fn call<B, R>(
        &self,
        object: Object<'_>,
        method: (&str, &str),
        body: &B,
    ) -> Result<R, BackendError>
    where
        B: Serialize + DynamicType,
        R: for<'de> DynamicDeserialize<'de>,
    {
        let connection = self.connection().await?;
        call(&connection, object, method, body).await
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
        self.call(object, (PROPERTIES, "GetAll"), &interface).await
    }

    /// One property of an object.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub async fn property(
        &self,
        object: Object<'_>,
        (interface, name): (&str, &str),
    ) -> Result<OwnedValue, BackendError> {
        self.call(object, (PROPERTIES, "Get"), &(interface, name))
            .await
    }

    /// Every signal from now on that fits one of `rules`, as the bus's `AddMatch` takes them.
    ///
    /// # Errors
    /// `Unavailable` when the bus is not there.
    pub async fn listen(&self, rules: &[&str]) -> Result<Signals, BackendError> {
        let connection = self.connect().await?;
        // Before the rules, or the first signals would have no reader.
        let stream = MessageStream::from(&connection);
        for rule in rules {
            call::<_, ()>(&connection, BUS, (BUS.service, "AddMatch"), rule).await?;
        }
        Ok(Signals { connection, stream })
    }

    async fn connection(&self) -> Result<Connection, BackendError> {
        let mut held = self.connection.lock().await;
        match held.as_ref().filter(|connection| !connection.is_closed()) {
            Some(connection) => Ok(connection.clone()),
            None => Ok(held.insert(self.connect().await?).clone()),
        }
    }

    async fn connect(&self) -> Result<Connection, BackendError> {
        let building = async {
            let builder = match &self.address {
                Some(address) => connection::Builder::address(address.as_str())?,
                None => connection::Builder::system()?,
            };
            builder.build().await
        };
        match timeout(CONNECT_TIME, building).await {
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
        loop {
            let next = poll_fn(|cx| Pin::new(&mut self.stream).poll_next(cx)).await;
            match next {
                Some(Ok(message)) if message.message_type() == zbus::message::Type::Signal => {
                    return Ok(message);
                }
                // Answers to calls over the same connection.
                Some(Ok(_)) => {}
                Some(Err(cause)) => return Err(failed(cause)),
                None => return Err(gone("the system bus closed the connection".to_owned())),
            }
        }
    }

    /// Calls `interface.member` of an object over the connection of the signals, for services that serve
    /// whoever has asked for it as long as its connection lives.
    ///
    /// # Errors
    /// As [`SystemBus::call`].
    pub async fn call(&self, object: Object<'_>, method: (&str, &str)) -> Result<(), BackendError> {
        call(&self.connection, object, method, &()).await
    }
}

async fn call<B, R>(
    connection: &Connection,
    object: Object<'_>,
    (interface, member): (&str, &str),
    body: &B,
) -> Result<R, BackendError>
where
    B: Serialize + DynamicType,
    R: for<'de> DynamicDeserialize<'de>,
{
    let asked = connection.call_method(
        Some(object.service),
        object.path,
        Some(interface),
        member,
        body,
    );
    let answer = timeout(ANSWER_TIME, asked).await.map_err(|_| {
        let service = object.service;
        gone(format!("{service} did not answer {member} in time"))
    })?;
    let answer = answer.map_err(failed)?;
    answer.body().deserialize().map_err(failed)
}

/// Bus or service are not there at present.
fn gone(message: String) -> BackendError {
    BackendError {
        hint: Some("it needs systemd and dbus (apt install dbus)".to_owned()),
        retry: true,
        ..BackendError::new(ErrorKind::Unavailable, message)
    }
}

fn failed(cause: zbus::Error) -> BackendError {
    let zbus::Error::MethodError(name, words, _) = cause else {
        return match cause {
            zbus::Error::InputOutput(cause) => gone(format!("the system bus is gone: {cause}")),
            other => BackendError::new(ErrorKind::Failed, other.to_string()),
        };
    };
    let words = words.unwrap_or_else(|| name.to_string());
    let last = name.rsplit('.').next().unwrap_or_default();
    match last {
        "ServiceUnknown" | "NameHasNoOwner" | "NoReply" | "Disconnected" | "Timeout" => gone(words),
        "NoSuchUnit" | "UnknownObject" => BackendError::new(ErrorKind::NotFound, words),
        "AccessDenied" | "InvalidArgs" => BackendError::new(ErrorKind::Refused, words),
        _ => BackendError::new(ErrorKind::Failed, words),
    }
}
