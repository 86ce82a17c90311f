//! Programs that identify themselves by the URL of a document (Client ID Metadata Documents).

use std::sync::Mutex;
use std::time::Duration;

use hyper::Uri;
use serde_json::Value;
use tokio::time::Instant;

use super::client::ClientMetadata;
use crate::http::{AllowedServers, fetch};
use gatewren_base::config::LiveSettings;
use gatewren_base::sys::{interface_addresses, lock, plain_line};

/// The maximum size of a document.
const MAX_BYTES: usize = 16 * 1024;

/// The maximum length of a URL; longer ones are refused.
const MAX_CHARS: usize = 512;

/// How long a document is cached, so that the owner agrees to what was shown.
const KEPT: Duration = Duration::from_mins(10);

/// The maximum number of cached documents; then the oldest is dropped.
const MOST_KEPT: usize = 16;

/// The cache of documents. Documents are fetched only for the owner: a stranger cannot make the server send
/// requests.
pub struct MetadataDocuments {
    live: LiveSettings,
    kept: Mutex<Vec<(Instant, String, ClientMetadata)>>,
}

impl MetadataDocuments {
    /// Creates an empty cache.
    pub fn new(live: LiveSettings) -> Self {
        Self {
            live,
            kept: Mutex::default(),
        }
    }

    /// Returns the contents of the document at this URL, or why it is not valid.
    pub async fn read(&self, address: &str) -> Result<ClientMetadata, String> {
        if let Some(metadata) = self.find_cached(address) {
            return Ok(metadata);
        }
        let near = self.live.read(|settings| settings.oauth.local_clients);
        let servers = if near {
            AllowedServers::HttpsOrThisServer
        } else {
            AllowedServers::PublicInternet(interface_addresses)
        };
        let fetched = fetch(address, servers, MAX_BYTES).await.map_err(|cause| {
            tracing::info!(client = address, %cause, "fetching a client's metadata document failed");
            format!(
                "the program's metadata document cannot be fetched: {}",
                plain_line(&cause.to_string(), 200)
            )
        })?;
        let metadata = validate_document(address, &fetched)?;
        let mut kept = lock(&self.kept);
        if kept.len() >= MOST_KEPT {
            kept.remove(0);
        }
        kept.push((Instant::now(), address.to_owned(), metadata.clone()));
        Ok(metadata)
    }

    fn find_cached(&self, address: &str) -> Option<ClientMetadata> {
        let mut kept = lock(&self.kept);
        kept.retain(|(at, ..)| at.elapsed() < KEPT);
        let found = kept.iter().find(|(_, known, _)| known == address);
        found.map(|(.., metadata)| metadata.clone())
    }
}

/// Whether an id is a URL that may have a document.
pub fn is_address(id: &str) -> bool {
    let sound = |b: u8| b.is_ascii_graphic() && !b"#\\\"<>^`{|}".contains(&b);
    let Some(Ok(uri)) = id.starts_with("https://").then(|| id.parse::<Uri>()) else {
        return false;
    };
    let has_host = uri
        .authority()
        .is_some_and(|authority| !authority.as_str().contains('@') && !authority.host().is_empty());
    let path = uri.path();
    let dots = path.split('/').any(|part| matches!(part, "." | ".."));
    id.len() <= MAX_CHARS && id.bytes().all(sound) && has_host && path.len() > 1 && !dots
}

/// Validates a document: it must name its own URL, and its program must have no secret, because it could not keep
/// one.
fn validate_document(address: &str, document: &[u8]) -> Result<ClientMetadata, String> {
    let json: Value = serde_json::from_slice(document)
        .map_err(|_| "the program's metadata document is not JSON".to_owned())?;
    if json.get("client_id").and_then(Value::as_str) != Some(address) {
        return Err("the program's metadata document names another client_id".to_owned());
    }
    let method = json.get("token_endpoint_auth_method");
    let has_secret = json.get("client_secret").is_some();
    if has_secret || method.is_some_and(|method| method != "none") {
        let words = "the program requires an unsupported authentication method: only token_endpoint_auth_method \
                     \"none\" is supported";
        return Err(words.to_owned());
    }
    ClientMetadata::read(&json)
        .map_err(|(_, words)| format!("the program's metadata document is invalid: {words}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use gatewren_base::config::Settings;

    const ADDRESS: &str = "https://chat.example/client.json";

    #[test]
    fn an_id_is_an_address_only_with_a_path() {
        for good in [ADDRESS, "https://a.example:444/x?y", "https://[::1]/x"] {
            assert!(is_address(good), "{good}");
        }
        for bad in [
            "",
            "client_1",
            "https://a.example",
            "https://a.example/",
            "http://a.example/x",
            "https://me@a.example/x",
            "https://a.example/x#y",
            "https://a.example/../x",
            "https://a.example/ x",
            &format!("https://a.example/{}", "x".repeat(MAX_CHARS)),
        ] {
            assert!(!is_address(bad), "{bad}");
        }
    }

    #[test]
    fn a_document_is_of_its_own_address_and_of_a_program_without_a_secret() {
        let good = json!({
            "client_id": ADDRESS, "client_name": "Chat", "redirect_uris": ["https://chat.example/b"],
            "token_endpoint_auth_method": "none"
        });
        let read = |json: &Value| validate_document(ADDRESS, json.to_string().as_bytes());
        assert_eq!(read(&good).unwrap().name, "Chat");
        for (key, value) in [
            ("client_id", json!("https://chat.example/other.json")),
            ("client_id", json!(null)),
            ("redirect_uris", json!(["http://chat.example/b"])),
            ("client_secret", json!("x")),
            ("token_endpoint_auth_method", json!("private_key_jwt")),
        ] {
            let mut bad = good.clone();
            bad[key] = value;
            assert!(read(&bad).is_err(), "{bad}");
        }
        assert!(validate_document(ADDRESS, b"<html>").is_err());
    }

    #[tokio::test]
    async fn nothing_near_is_asked_unless_the_settings_say_so() {
        let documents = MetadataDocuments::new(Settings::default().into());
        let error = documents.read("https://127.0.0.1:9/x").await.unwrap_err();
        assert!(error.contains("public Internet"), "{error}");
    }
}
