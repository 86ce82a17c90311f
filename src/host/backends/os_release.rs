//! Parses an operating system's `os-release`.

use schemars::JsonSchema;
use serde::Serialize;

use super::source::{field, label};

/// An operating system, as its `os-release` names it (os-release(5)).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OsRelease {
    /// Its name, such as `Debian GNU/Linux`.
    pub name: String,
    /// Its version, such as `12`; absent for a rolling one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its short name, such as `debian`.
    pub id: String,
}

impl OsRelease {
    /// Parses `os-release`; missing values get the defaults of its manual page. Root in a container
    /// controls the file, so each value is sanitized to one short line.
    pub fn parse(text: &str) -> Self {
        let value = |key| field(text, key, '=').and_then(|value| label(&unquote(value)));
        Self {
            name: value("NAME").unwrap_or_else(|| "Linux".to_owned()),
            version: value("VERSION_ID"),
            id: value("ID").unwrap_or_else(|| "linux".to_owned()),
        }
    }

    /// Like [`Self::parse`]; `None` if the text is empty.
    pub fn parse_nonempty(text: &str) -> Option<Self> {
        (!text.trim().is_empty()).then(|| Self::parse(text))
    }
}

/// Removes shell quotes and backslashes from a value.
fn unquote(value: &str) -> String {
    let quoted = ['"', '\'']
        .iter()
        .find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
    let mut text = String::new();
    let mut escaped = false;
    for character in quoted.unwrap_or(value).chars() {
        if character == '\\' && !escaped {
            escaped = true;
        } else {
            text.push(character);
            escaped = false;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debian_says_what_it_is() {
        let text = "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nNAME=\"Debian GNU/Linux\"\n\
                    VERSION_ID=\"12\"\nID=debian\n";
        let os = OsRelease::parse(text);
        assert_eq!(
            (os.name.as_str(), os.id.as_str()),
            ("Debian GNU/Linux", "debian")
        );
        assert_eq!(os.version.as_deref(), Some("12"));
    }

    #[test]
    fn odd_os_releases_have_the_defaults() {
        for text in ["", "garbage", "NAME=\nID=''", "=\n==\nNAME", "\u{0}"] {
            let os = OsRelease::parse(text);
            assert_eq!(
                (os.name.as_str(), os.id.as_str()),
                ("Linux", "linux"),
                "{text}"
            );
            assert_eq!(os.version, None);
        }
        let hostile = OsRelease::parse(&format!(
            "NAME=\"\u{1b}[2J\u{202e}x\u{9b}1m\"\nID={}\nVERSION_ID=' \r\t '",
            "x".repeat(1 << 20)
        ));
        assert_eq!(hostile.name, "^[[2J<U+202E>x<U+009B>1m");
        assert!(hostile.id.len() < 500, "{}", hostile.id.len());
        assert_eq!(hostile.version, None);
        let quoted = OsRelease::parse("NAME='It is \\\"x\\\" \\\\'\nID=\"");
        assert_eq!(
            (quoted.name.as_str(), quoted.id.as_str()),
            ("It is \"x\" \\", "\"")
        );
    }
}
