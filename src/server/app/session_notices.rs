//! Notifications that the owner sends to connected clients, through a socket in the state directory that only root and the
//! server's user can open.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::broadcast;
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use crate::transport::Endpoint;
use gatewren_base::config::is_instance_name;
use gatewren_base::sys::own_uid;
use gatewren_wire::protocol::LogSeverity;
use gatewren_wire::registry::{
    ListChange, MessageAudience, MessageContent, SessionLog, SessionMessage,
};

/// The socket's name in the state directory. That of a front with a name ends with the name: `notices.sock.b`.
const SOCKET: &str = "notices.sock";

/// The maximum size of the parameters, in bytes. The audit keeps them.
pub const MAX_PARAMS: usize = 4096;

/// The maximum size of a request or an answer, in bytes.
const MAX_LINE: u64 = 16 << 10;

/// The maximum number of notices a minute: each one may go to thousands of streams.
const A_MINUTE: u32 = 60;

/// How long one side waits for the other.
const PATIENCE: Duration = Duration::from_secs(5);

/// The component that logs, if the owner names none.
const LOGGER: &str = "owner";

/// The longest name of a component.
const MAX_LOGGER: usize = 128;

/// A notification from the owner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnerNotice {
    /// Who receives it.
    pub to: NoticeTarget,
    /// The method.
    pub method: String,
    /// The parameters.
    pub params: Map<String, Value>,
}

/// The clients that receive a notice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NoticeTarget {
    /// The session of this name.
    Session(String),
    /// The clients of the agent with this id.
    Agent(String),
    /// All clients.
    All,
}

/// The answer to a notice.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum NoticeAnswer {
    /// It was sent. The number of open sessions among the receivers.
    Sessions(usize),
    /// It was refused, and why.
    Error(String),
}

impl OwnerNotice {
    /// Checks the notice, and returns what its receivers get.
    ///
    /// # Errors
    /// What is wrong with the method or the parameters.
    pub fn content(&self) -> Result<MessageContent, String> {
        if json!(self.params).to_string().len() > MAX_PARAMS {
            return Err(format!("the parameters are larger than {MAX_PARAMS} bytes"));
        }
        match self.method.as_str() {
            "notifications/message" => log_message(&self.params).map(MessageContent::Log),
            "notifications/tools/list_changed" if self.params.is_empty() => {
                Ok(MessageContent::List(ListChange::Tools))
            }
            "notifications/tools/list_changed" => {
                Err("notifications/tools/list_changed has no parameters".to_owned())
            }
            _ => Err(
                "the method must be notifications/message or notifications/tools/list_changed: the \
                 server declares no other notification that the owner could send"
                    .to_owned(),
            ),
        }
    }
}

/// Reads a log message: a level, data, and perhaps the name of a logger.
fn log_message(params: &Map<String, Value>) -> Result<SessionLog, String> {
    if let Some(other) = params
        .keys()
        .find(|key| !["level", "data", "logger"].contains(&key.as_str()))
    {
        return Err(format!("unknown parameter {other:?}"));
    }
    let level = params.get("level").and_then(Value::as_str);
    let level = level
        .and_then(LogSeverity::parse)
        .ok_or("level must be debug, info, notice, warning, error, critical, alert or emergency")?;
    let logger = match params.get("logger") {
        None => LOGGER.into(),
        Some(Value::String(name)) if name.len() <= MAX_LOGGER => name.clone().into(),
        Some(_) => {
            return Err(format!(
                "logger must be a text of at most {MAX_LOGGER} bytes"
            ));
        }
    };
    let data = params.get("data").ok_or("data is missing")?;
    Ok(SessionLog {
        level,
        logger,
        data: data.clone(),
        is_from_owner: true,
    })
}

/// Opens the socket of the front with this name. A file of an earlier run is replaced: no other front has the name.
///
/// # Errors
/// If the socket cannot be created.
pub fn listen(directory: &Path, instance: &str) -> io::Result<UnixListener> {
    let path = match instance {
        "" => directory.join(SOCKET),
        name => directory.join(format!("{SOCKET}.{name}")),
    };
    match fs::remove_file(&path) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause),
        _ => {}
    }
    let listener = UnixListener::bind(&path)?;
    fs::set_permissions(&path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Sends the notices that arrive, one after the other, while it runs.
pub async fn serve(
    listener: UnixListener,
    messages: broadcast::Sender<SessionMessage>,
    endpoint: Arc<Endpoint>,
) {
    let (mut since, mut count) = (Instant::now(), 0);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Without descriptors; a later one can work.
            tokio::time::sleep(Duration::from_secs(1)).await;
            continue;
        };
        // The directory's permissions keep others out already.
        let uid = stream.peer_cred().map(|peer| peer.uid());
        if !uid.is_ok_and(|uid| uid == 0 || uid == own_uid()) {
            continue;
        }
        if since.elapsed() >= Duration::from_mins(1) {
            (since, count) = (Instant::now(), 0);
        }
        count += 1;
        let is_too_many = count > A_MINUTE;
        let talk = talk(stream, |notice| {
            if is_too_many {
                return Err(format!(
                    "more than {A_MINUTE} notices in a minute; wait a minute"
                ));
            }
            send(&notice, &messages, &endpoint)
        });
        let _ = timeout(PATIENCE, talk).await;
    }
}

/// Reads one notice and answers it.
async fn talk(
    mut stream: UnixStream,
    act: impl FnOnce(OwnerNotice) -> Result<usize, String>,
) -> io::Result<()> {
    let mut line = Vec::new();
    let (reader, mut writer) = stream.split();
    let mut reader = BufReader::new(reader.take(MAX_LINE));
    reader.read_until(b'\n', &mut line).await?;
    let notice = serde_json::from_slice(&line).map_err(|e| e.to_string());
    let answer = match notice.and_then(act) {
        Ok(sessions) => NoticeAnswer::Sessions(sessions),
        Err(why) => NoticeAnswer::Error(why),
    };
    let mut answer = json!(answer).to_string();
    answer.push('\n');
    writer.write_all(answer.as_bytes()).await
}

/// Sends a notice; returns the number of open sessions among its receivers.
fn send(
    notice: &OwnerNotice,
    messages: &broadcast::Sender<SessionMessage>,
    endpoint: &Endpoint,
) -> Result<usize, String> {
    let content = notice.content()?;
    let (audience, sessions) = match &notice.to {
        NoticeTarget::All => (MessageAudience::Everyone, endpoint.count_sessions(None)),
        NoticeTarget::Agent(agent) => {
            let sessions = endpoint.count_sessions(Some(agent));
            (MessageAudience::Agent(agent.as_str().into()), sessions)
        }
        NoticeTarget::Session(name) => {
            let known = Uuid::parse_str(name).is_ok_and(|name| endpoint.has_session(name));
            if !known {
                return Err(format!("there is no open session {name:?}"));
            }
            (MessageAudience::Session(name.as_str().into()), 1)
        }
    };
    // An error means that no client listens.
    let _ = messages.send(SessionMessage { audience, content });
    Ok(sessions)
}

/// Passes a notice to the fronts that have this state directory; returns the number of open sessions among its
/// receivers. Each front also knows sessions of the others, so the largest number counts.
///
/// # Errors
/// If no front is running, or each refuses it.
pub async fn send_notice(directory: &Path, notice: &OwnerNotice) -> Result<usize, String> {
    let mut answer = send_to(&directory.join(SOCKET), notice).await;
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name().into_string().unwrap_or_default();
        let instance = name.strip_prefix(SOCKET).and_then(|n| n.strip_prefix('.'));
        if instance.is_some_and(is_instance_name) {
            answer = match (answer, send_to(&entry.path(), notice).await) {
                (Ok(one), Ok(other)) => Ok(one.max(other)),
                (Err(_), other @ Ok(_)) => other,
                (one, Err(_)) => one,
            };
        }
    }
    answer
}

/// Passes a notice to one front.
async fn send_to(socket: &Path, notice: &OwnerNotice) -> Result<usize, String> {
    let ask = async {
        let mut stream = UnixStream::connect(socket).await?;
        let line = json!(notice).to_string() + "\n";
        stream.write_all(line.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.take(MAX_LINE).read_to_end(&mut answer).await?;
        Ok::<_, io::Error>(answer)
    };
    let answer = timeout(PATIENCE, ask).await;
    let answer = answer.map_err(|_| "the server does not answer".to_owned())?;
    let answer = answer.map_err(|cause| format!("the server is not running: {cause}"))?;
    match serde_json::from_slice(&answer) {
        Ok(NoticeAnswer::Sessions(sessions)) => Ok(sessions),
        Ok(NoticeAnswer::Error(why)) => Err(why),
        Err(_) => Err("the server closed the connection without an answer".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(method: &str, params: &Value) -> Result<MessageContent, String> {
        let notice = json!({ "to": "all", "method": method, "params": params });
        serde_json::from_value::<OwnerNotice>(notice)
            .unwrap()
            .content()
    }

    #[test]
    fn a_notice_is_what_a_client_of_the_server_may_get() {
        let message = json!({ "level": "warning", "data": { "disk": "full" } });
        let Ok(MessageContent::Log(log)) = content("notifications/message", &message) else {
            panic!("a log message");
        };
        assert_eq!((log.level, &*log.logger), (LogSeverity::Warning, "owner"));
        assert!(content("notifications/tools/list_changed", &json!({})).is_ok());
        let too_much = "x".repeat(MAX_PARAMS);
        let refused = [
            ("notifications/message", json!({})),
            (
                "notifications/message",
                json!({ "level": "loud", "data": 1 }),
            ),
            ("notifications/message", json!({ "level": "info" })),
            (
                "notifications/message",
                json!({ "level": "info", "data": 1, "to": 2 }),
            ),
            (
                "notifications/message",
                json!({ "level": "info", "data": 1, "logger": 2 }),
            ),
            (
                "notifications/message",
                json!({ "level": "info", "data": too_much }),
            ),
            ("notifications/tools/list_changed", json!({ "x": 1 })),
            ("notifications/resources/list_changed", json!({})),
            ("tools/call", json!({})),
        ];
        for (method, params) in refused {
            assert!(content(method, &params).is_err(), "{method} {params}");
        }
    }
}
