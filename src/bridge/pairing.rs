//! Exchanges a code for a token, once, and keeps the token in a private file for later starts.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use hyper::{Method, Request};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::json;

use super::answer::rejection_text;
use super::code::PairingLink;
use super::request_error::UpstreamError;
use gatewren_http_client::{AllowedServers, HttpClient, HttpClientError, Pin, ServerVerification};
use gatewren_portable::{Secret, Zeroizing, files};

/// The largest token file, and the largest response to a code.
const MAX_BYTES: usize = 16 << 10;

/// The timeout from the request to the complete response.
const WITHIN: Duration = Duration::from_secs(20);

/// The result of a pairing: where the server is, and the credentials for it.
pub struct PairedServer {
    /// The URL of the MCP endpoint.
    pub url: String,
    /// The pin that authenticates the server.
    pub pin: Pin,
    /// The token.
    pub token: Secret,
}

/// The content of the token file.
#[derive(Serialize, Deserialize)]
struct StoredToken {
    /// The SHA-256 of the code.
    code_sha256: String,
    url: String,
    pin: String,
    #[serde(serialize_with = "write_token")]
    token: Secret,
}

fn write_token<S: Serializer>(token: &Secret, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(token.expose())
}

/// The server's response.
#[derive(Deserialize)]
struct Answer {
    token: Secret,
    pin: String,
}

/// The help of the option that names the token file, with the default of this system.
#[cfg(not(any(windows, target_os = "macos")))]
pub const FILE_HELP: &str =
    "Where to store the token of --pair [default: ~/.local/state/gatewren-bridge/HOST_PORT.json]";
#[cfg(target_os = "macos")]
pub const FILE_HELP: &str = "Where to store the token of --pair [default: ~/Library/Application \
                             Support/gatewren-bridge/HOST_PORT.json]";
#[cfg(windows)]
pub const FILE_HELP: &str = "Where to store the token of --pair; outside of your profile, other users may be able to \
                             read it [default: %LOCALAPPDATA%\\gatewren-bridge\\HOST_PORT.json]";

/// Returns the default path of a server's token file.
pub fn usual_file(link: &PairingLink) -> Result<PathBuf, String> {
    let plain = |character: char| character.is_ascii_alphanumeric() || ".-_".contains(character);
    let host = &link.host;
    let name = host.replace(|character| !plain(character), "_");
    let folder = usual_folder()?.join("gatewren-bridge");
    Ok(folder.join(format!("{name}.json")))
}

#[cfg(not(any(windows, target_os = "macos")))]
fn usual_folder() -> Result<PathBuf, String> {
    match folder_from("XDG_STATE_HOME") {
        Ok(folder) => Ok(folder),
        Err(_) => Ok(folder_from("HOME")?.join(".local/state")),
    }
}

#[cfg(target_os = "macos")]
fn usual_folder() -> Result<PathBuf, String> {
    Ok(folder_from("HOME")?.join("Library/Application Support"))
}

/// The folder is in the user's profile, whose permissions it inherits: the user, the administrators and the system.
#[cfg(windows)]
fn usual_folder() -> Result<PathBuf, String> {
    folder_from("LOCALAPPDATA")
}

fn folder_from(variable: &str) -> Result<PathBuf, String> {
    let value = std::env::var_os(variable).filter(|value| !value.is_empty());
    value.map(PathBuf::from).ok_or_else(|| {
        format!("{variable} is not set, so the token has no default file; name one with --file")
    })
}

/// Returns the token for this code: the stored one, or a new one from the server.
pub async fn pair(link: &PairingLink, file: &Path) -> Result<PairedServer, String> {
    let code_sha256 = hash(link.code.letters());
    let stored = read_stored(file)?;
    if let Some(stored) = stored.filter(|stored| stored.code_sha256 == code_sha256) {
        let pin = stored.pin.parse();
        return Ok(PairedServer {
            pin: pin.map_err(|e| format!("{} is damaged: {e}", file.display()))?,
            url: stored.url,
            token: stored.token,
        });
    }
    // Before the code is used: a token that cannot be stored is not fetched.
    files::private_dir(file.parent().unwrap_or(Path::new("."))).map_err(|e| e.to_string())?;
    let answer = tokio::time::timeout(WITHIN, redeem(link)).await;
    let late = |_| format!("the server did not answer within {} s", WITHIN.as_secs());
    let answer = answer.map_err(late)??;
    let pin: Pin = answer
        .pin
        .parse()
        .map_err(|e| format!("the server sent an invalid pin: {e}"))?;
    if !link.code.pin.begins(&pin) {
        return Err("the server's pin differs from the one in the code".to_owned());
    }
    let stored = StoredToken {
        code_sha256,
        url: format!("https://{}/mcp", link.host),
        pin: pin.to_string(),
        token: answer.token,
    };
    let text = serde_json::to_vec(&stored).map_err(|e| e.to_string())?;
    let text = Zeroizing::new(text);
    files::write_private(file, &text).map_err(|e| e.to_string())?;
    Ok(PairedServer {
        url: stored.url,
        pin,
        token: stored.token,
    })
}

fn read_stored(file: &Path) -> Result<Option<StoredToken>, String> {
    let bytes = match files::read_bounded(file, MAX_BYTES) {
        Ok(bytes) => Zeroizing::new(bytes),
        Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err(cause.to_string()),
    };
    let open = files::may_others_read(file).map_err(|e| e.to_string())?;
    let shown = file.display();
    if open {
        return Err(format!(
            "other users can read the token in {shown}; run: chmod 600 {shown}"
        ));
    }
    // An unreadable token file is not deleted: its code is already used.
    let stored = serde_json::from_slice(&bytes);
    stored.map(Some).map_err(|_| {
        format!("{shown} is not a token file of a pairing; move it away, and pair again")
    })
}

/// Sends the code to the server only after the TLS handshake has proved the server's key.
async fn redeem(link: &PairingLink) -> Result<Answer, String> {
    let address = format!("https://{}/pair", link.host);
    let known = ServerVerification::Pin(link.code.pin);
    let words = |cause: HttpClientError| match cause.certificate_error() {
        Some(_) => format!(
            "the code is mistyped, or {} is not the server that printed it; nothing was sent. Compare the code with \
             the one of `gatewren pair`. If it is the same, another machine intercepts the connection, or the server \
             has a new key: run `gatewren pair` again there",
            link.host
        ),
        None => UpstreamError::from(cause).words,
    };
    let client = HttpClient::new(&address, AllowedServers::Https, &known).map_err(words)?;
    let mut connection = client.connect().await.map_err(words)?;
    let body = json!({ "code": link.code.secret.expose() });
    let mut request = Request::new(Bytes::from(body.to_string()));
    *request.method_mut() = Method::POST;
    let answer = connection.ask(request).await.map_err(words)?;
    let (head, body) = answer.into_parts();
    let body = Limited::new(body, MAX_BYTES).collect().await;
    let body = body.map_err(|e| format!("the server's response is incomplete: {e}"))?;
    let body = body.to_bytes();
    if !head.status.is_success() {
        return Err(rejection_text(&head.headers, head.status.as_str(), &body));
    }
    let answer = serde_json::from_slice(&body);
    answer.map_err(|_| "the server's response to the code is invalid".to_owned())
}

fn hash(letters: &str) -> String {
    let hash = digest(&SHA256, format!("paired {letters}").as_bytes());
    URL_SAFE_NO_PAD.encode(hash)
}
