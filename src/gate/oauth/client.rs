//! OAuth clients: programs that ask for access.

use serde_json::Value;

use super::redirect::place;
use gatewren_base::sys::plain_line;

/// The maximum number of redirect URIs of a program; more are refused.
const MOST_REDIRECTS: usize = 16;

/// The maximum length of a program's name; longer ones are cut.
const MAX_NAME: usize = 64;

/// A program that asks for access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestingClient {
    /// Its id.
    pub id: String,
    /// The name that it chose, sanitized for display.
    pub name: String,
    /// Its redirect URIs.
    pub redirect_uris: Vec<String>,
    /// The host that vouches for it, if its id is the URL of a document there.
    pub metadata_host: Option<String>,
    /// The id of the agent that the owner has created for it.
    pub agent: Option<String>,
}

/// A program's own metadata (RFC 7591, 2), from a registration or a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientMetadata {
    /// The name that it chose, sanitized for display; may be empty.
    pub name: String,
    /// Its redirect URIs.
    pub redirect_uris: Vec<String>,
}

/// An error in a program's metadata: a code of RFC 7591 and a description.
pub type MetadataFault = (&'static str, String);

impl ClientMetadata {
    /// Parses the metadata. Unused fields are ignored.
    pub fn read(metadata: &Value) -> Result<Self, MetadataFault> {
        let uris = metadata.get("redirect_uris").and_then(Value::as_array);
        let uris = uris.map(Vec::as_slice).unwrap_or_default();
        if !(1..=MOST_REDIRECTS).contains(&uris.len()) {
            let words = format!("redirect_uris must be a list of 1 to {MOST_REDIRECTS} URIs");
            return Err(("invalid_redirect_uri", words));
        }
        let good = |uri: &Value| {
            let uri = uri.as_str().filter(|uri| place(uri).is_some());
            uri.map(ToOwned::to_owned)
        };
        let uris: Option<Vec<String>> = uris.iter().map(good).collect();
        let uris = uris.ok_or_else(|| {
            let words = "a redirect URI must begin with https://, or with http:// and 127.0.0.1, [::1] or \
                         localhost; it must have no fragment";
            ("invalid_redirect_uri", words.to_owned())
        })?;
        let asks_for_codes = metadata
            .get("response_types")
            .and_then(Value::as_array)
            .is_none_or(|types| types.iter().any(|one| one == "code"));
        if !asks_for_codes {
            let words = "the only supported response type is code";
            return Err(("invalid_client_metadata", words.to_owned()));
        }
        let name = metadata.get("client_name").and_then(Value::as_str);
        Ok(Self {
            name: plain_line(name.unwrap_or_default(), MAX_NAME),
            redirect_uris: uris,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_program_says_where_its_answers_may_go() {
        let metadata = json!({
            "client_name": "Chat\u{202e}", "redirect_uris": ["https://a.example/b", "http://localhost/c"],
            "grant_types": ["authorization_code"], "scope": "x", "logo_uri": "https://a.example/l"
        });
        let read = ClientMetadata::read(&metadata).unwrap();
        assert_eq!((read.name.as_str(), read.redirect_uris.len()), ("Chat", 2));
        for (bad, code) in [
            (json!(1), "invalid_redirect_uri"),
            (json!({}), "invalid_redirect_uri"),
            (json!({ "redirect_uris": [] }), "invalid_redirect_uri"),
            (
                json!({ "redirect_uris": ["http://a.example/b"] }),
                "invalid_redirect_uri",
            ),
            (
                json!({ "redirect_uris": ["https://a.example/b", 1] }),
                "invalid_redirect_uri",
            ),
            (
                json!({ "redirect_uris": vec!["https://a.example/b"; 17] }),
                "invalid_redirect_uri",
            ),
            (
                json!({ "redirect_uris": ["https://a.example/b"], "response_types": ["token"] }),
                "invalid_client_metadata",
            ),
        ] {
            assert_eq!(ClientMetadata::read(&bad).unwrap_err().0, code, "{bad}");
        }
    }
}
