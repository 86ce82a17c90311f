//! `sessions.instance`: the name of one of several fronts that serve the same server.

use toml::de::DeValue;

use super::shape::Shape;

/// The maximum length of a name: each session id begins with it.
const MAX_BYTES: usize = 16;

/// What a name consists of, for the messages about a wrong one.
pub const INSTANCE_NAME_FORM: &str = "1 to 16 of a-z and 0-9";

/// The name of an instance; empty for none.
pub(super) struct InstanceName;

impl Shape<String> for InstanceName {
    fn read(&self, value: &DeValue<'_>) -> Result<String, String> {
        let name = value
            .as_str()
            .filter(|name| name.is_empty() || is_instance_name(name));
        name.map(str::to_owned)
            .ok_or_else(|| format!("a name in quotes, such as \"a\", of {INSTANCE_NAME_FORM}"))
    }

    fn write(&self, value: &String) -> String {
        format!("\"{value}\"")
    }
}

/// Whether a front may have this name. It is also a part of file names and of the names of units, and a session id
/// without a name does not begin like one.
pub fn is_instance_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=MAX_BYTES).contains(&name.len()) && name.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_plain() {
        for name in ["a", "2", "front1", "abcdefghijklmnop"] {
            assert!(is_instance_name(name), "{name}");
        }
        for name in [
            "",
            "A",
            "a-b",
            "a.b",
            "a/b",
            "a b",
            "\u{e4}",
            "abcdefghijklmnopq",
        ] {
            assert!(!is_instance_name(name), "{name}");
        }
    }
}
