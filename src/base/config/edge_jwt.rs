//! `[edge_jwt]`: an identity provider at a proxy, and the keys for its tokens.

use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::de::DeValue;

use super::shape::Shape;

/// A token that a proxy adds to each request as a header. Either all required fields are set or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EdgeJwt {
    /// The header's name in lower case; empty if there is no such proxy.
    pub header: String,
    /// Where to get the provider's keys.
    pub jwks: Option<KeyLocation>,
    /// The required audience of the token.
    pub audience: String,
    /// The required issuer of the token.
    pub issuer: String,
    /// The interval of fetching the keys.
    pub refresh: Duration,
}

/// The location of the keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyLocation {
    /// A file.
    File(PathBuf),
    /// A URL: `https://`, or on this host.
    Url(String),
}

impl Default for EdgeJwt {
    fn default() -> Self {
        Self {
            header: String::new(),
            jwks: None,
            audience: String::new(),
            issuer: String::new(),
            refresh: Duration::from_mins(5),
        }
    }
}

impl EdgeJwt {
    /// Returns the rule that the values break, if there is one.
    pub(super) fn broken_rule(&self) -> Option<String> {
        let set = [
            !self.header.is_empty(),
            self.jwks.is_some(),
            !self.audience.is_empty(),
            !self.issuer.is_empty(),
        ];
        let is_half = set.contains(&true) && set.contains(&false);
        is_half.then(|| {
            "edge_jwt needs all of header, jwks, audience and issuer; set the missing ones, or \
             remove the others"
                .to_owned()
        })
    }
}

/// The name of a header that may carry the token.
pub(super) struct HeaderName;

impl Shape<String> for HeaderName {
    fn read(&self, value: &DeValue<'_>) -> Result<String, String> {
        let reserved = ["authorization", "cookie", "host", "origin"];
        let fits = |name: &String| {
            name.len() <= 64
                && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
                && !reserved.contains(&name.as_str())
        };
        let name = value.as_str().map(str::to_ascii_lowercase);
        name.filter(fits).ok_or_else(|| {
            "the name of a header in quotes, such as \"Cf-Access-Jwt-Assertion\", but not \
             Authorization, Cookie, Host or Origin"
                .to_owned()
        })
    }

    fn write(&self, value: &String) -> String {
        format!("\"{value}\"")
    }
}

/// A text of one line.
pub(super) struct OneLineText;

impl Shape<String> for OneLineText {
    fn read(&self, value: &DeValue<'_>) -> Result<String, String> {
        let text = value
            .as_str()
            .filter(|text| text.len() <= 1024 && !text.chars().any(char::is_control));
        text.map(str::to_owned)
            .ok_or_else(|| "one line of text in quotes".to_owned())
    }

    fn write(&self, value: &String) -> String {
        toml::Value::from(value.as_str()).to_string()
    }
}

/// A file, a URL, or nothing.
pub(super) struct KeyLocationShape;

impl Shape<Option<KeyLocation>> for KeyLocationShape {
    fn read(&self, value: &DeValue<'_>) -> Result<Option<KeyLocation>, String> {
        let text = value.as_str();
        if text == Some("") {
            return Ok(None);
        }
        let place = text.and_then(|text| {
            if Path::new(text).is_absolute() {
                Some(KeyLocation::File(text.into()))
            } else {
                is_address(text).then(|| KeyLocation::Url(text.to_owned()))
            }
        });
        place.map(Some).ok_or_else(|| {
            "an absolute path or a URL in quotes, such as \"https://idp.example/keys\"; plain \
             http:// is only for 127.0.0.1, [::1] and localhost"
                .to_owned()
        })
    }

    fn write(&self, value: &Option<KeyLocation>) -> String {
        let text = match value {
            None => String::new(),
            Some(KeyLocation::File(path)) => path.to_string_lossy().into_owned(),
            Some(KeyLocation::Url(url)) => url.clone(),
        };
        toml::Value::from(text).to_string()
    }
}

fn is_address(text: &str) -> bool {
    let good = |rest: &str| {
        let host = rest.split(['/', '?']).next().unwrap_or_default();
        !host.is_empty() && !host.contains('@') && text.bytes().all(|b| b.is_ascii_graphic())
    };
    if let Some(rest) = text.strip_prefix("https://") {
        return text.len() <= 1024 && good(rest);
    }
    let Some(rest) = text.strip_prefix("http://") else {
        return false;
    };
    let host = rest.split(['/', '?']).next().unwrap_or_default();
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    good(rest) && ["127.0.0.1", "[::1]", "localhost"].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T, S: Shape<T>>(shape: &S, text: &str) -> Option<T> {
        let toml = toml::Value::from(text).to_string();
        let value = DeValue::parse(&toml).unwrap();
        shape.read(value.get_ref()).ok()
    }

    #[test]
    fn keys_are_a_file_or_at_an_address_that_cannot_be_listened_to() {
        assert_eq!(read(&KeyLocationShape, ""), Some(None));
        let file = KeyLocation::File("/etc/keys.json".into());
        assert_eq!(read(&KeyLocationShape, "/etc/keys.json"), Some(Some(file)));
        for good in [
            "https://idp.example/keys?x=1",
            "http://127.0.0.1:91/keys",
            "http://[::1]:91/keys",
            "http://[::1]/",
            "http://localhost/keys",
        ] {
            assert_eq!(
                read(&KeyLocationShape, good),
                Some(Some(KeyLocation::Url(good.to_owned())))
            );
        }
        for bad in [
            "keys.json",
            "http://idp.example/keys",
            "http://localhost.evil/",
            "http://127.0.0.1@evil/",
            "https://",
            "https://user@host/",
            "https://a b/",
            "ftp://localhost/",
        ] {
            assert_eq!(read(&KeyLocationShape, bad), None, "{bad}");
        }
    }

    #[test]
    fn the_token_has_a_header_of_its_own() {
        assert_eq!(read(&HeaderName, "X-Id"), Some("x-id".to_owned()));
        assert_eq!(read(&HeaderName, ""), Some(String::new()));
        for bad in ["Authorization", "cookie", "a b", "a:b", "ä"] {
            assert_eq!(read(&HeaderName, bad), None, "{bad}");
        }
    }
}
