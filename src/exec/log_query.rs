//! Which lines of a journal are asked for, in types that are never an option of a program or a second line.

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::unit_name::UnitName;

/// Which lines of a journal, and in which order they come.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogQuery {
    /// Only those of this unit, and what systemd says of it.
    #[serde(default)]
    pub unit: Option<UnitName>,
    /// Only those of the kernel.
    #[serde(default)]
    pub kernel: bool,
    /// Only those as severe as this or more.
    #[serde(default)]
    pub priority: Option<LogPriority>,
    /// Only those from this moment on, in milliseconds since 1970; not together with a cursor.
    #[serde(default)]
    pub since_ms: Option<u64>,
    /// Only those up to this moment.
    #[serde(default)]
    pub until_ms: Option<u64>,
    /// Only those whose message fits.
    #[serde(default)]
    pub grep: Option<LogPattern>,
    /// Only those of this boot.
    #[serde(default)]
    pub boot: Option<BootName>,
    /// Where to begin: the line that it names is not among them.
    #[serde(default)]
    pub cursor: Option<LogCursor>,
    /// In which order, and whether to wait for more.
    pub order: LogOrder,
}

/// In which order lines come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogOrder {
    /// From the newest, or from before the cursor, to older ones.
    #[default]
    Older,
    /// From the oldest, or from behind the cursor, to newer ones.
    Newer,
    /// What is written from now on, or what is behind the cursor and what is written then, until nobody listens.
    Follow,
}

/// How severe a line is, in syslog's words.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum LogPriority {
    /// The system is unusable.
    Emerg,
    /// Something must be done at once.
    Alert,
    /// Critical.
    Crit,
    /// An error.
    Err,
    /// A warning.
    Warning,
    /// Normal, but of note.
    Notice,
    /// Information.
    Info,
    /// For debugging.
    Debug,
}

impl LogPriority {
    const ALL: [Self; 8] = [
        Self::Emerg,
        Self::Alert,
        Self::Crit,
        Self::Err,
        Self::Warning,
        Self::Notice,
        Self::Info,
        Self::Debug,
    ];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Emerg => "emerg",
            Self::Alert => "alert",
            Self::Crit => "crit",
            Self::Err => "err",
            Self::Warning => "warning",
            Self::Notice => "notice",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }

    /// From syslog's number, 0 to 7.
    pub fn of_number(number: &str) -> Option<Self> {
        let all = Self::ALL.into_iter().zip(0_u8..);
        all.into_iter()
            .find_map(|(priority, of)| (number.parse() == Ok(of)).then_some(priority))
    }
}

/// Why a text is none of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidText(&'static str);

impl fmt::Display for InvalidText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for InvalidText {}

/// A text of a kind, with its rule and its schema.
macro_rules! text {
    ($(#[$doc:meta])* $name:ident, $good:expr, $rule:literal, $schema:tt) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidText;

            fn try_from(text: String) -> Result<Self, InvalidText> {
                let good: fn(&str) -> bool = $good;
                if good(&text) {
                    Ok(Self(text))
                } else {
                    Err(InvalidText($rule))
                }
            }
        }

        impl From<$name> for String {
            fn from(text: $name) -> Self {
                text.0
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!($schema)
            }
        }
    };
}

text!(
    /// A place in a journal, as journald writes it: `s=...;i=...;b=...;m=...;t=...;x=...`.
    LogCursor,
    |text| (1..=512).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"=;_-".contains(&b)),
    "a cursor is one that an answer of this tool has given",
    { "type": "string", "minLength": 1, "maxLength": 512, "pattern": "^[A-Za-z0-9=;_-]+$" }
);

text!(
    /// A boot: by its number, `0` for this one, `-1` for the one before, or by its id of 32 hexadecimal digits.
    BootName,
    |text| is_boot(text),
    "a boot is 0 for this one, -1 for the one before and so on, or an id of 32 hexadecimal digits",
    { "type": "string", "pattern": "^(0|-[0-9]{1,4}|[0-9a-f]{32})$" }
);

text!(
    /// A regular expression (PCRE2) for messages, in one line.
    LogPattern,
    |text| (1..=256).contains(&text.len()) && !text.contains(char::is_control),
    "a pattern is one line of 1 to 256 bytes",
    { "type": "string", "minLength": 1, "maxLength": 256 }
);

fn is_boot(text: &str) -> bool {
    let back = |number: &str| {
        (1..=4).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit())
    };
    let is_id = text.len() == 32 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    text == "0" || text.strip_prefix('-').is_some_and(back) || is_id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_can_be_an_option_or_a_second_line() {
        let read = |text: &str| serde_json::to_value(text).unwrap();
        let cursor = "s=b8f1;i=4e;b=0d47c3;m=2a;t=5f;x=9c";
        assert!(serde_json::from_value::<LogCursor>(read(cursor)).is_ok());
        for bad in ["", "s=1 --merge", "s=1\n", "ä", &"a".repeat(513)] {
            assert!(
                serde_json::from_value::<LogCursor>(read(bad)).is_err(),
                "{bad:?}"
            );
        }
        let id = "0d47c3a1".repeat(4);
        for (boot, good) in [
            ("0", true),
            ("-1", true),
            ("-12", true),
            (id.as_str(), true),
            ("1", false),
            ("--all", false),
            ("-", false),
            ("all", false),
            ("-12345", false),
            ("", false),
        ] {
            let read = serde_json::from_value::<BootName>(read(boot));
            assert_eq!(read.is_ok(), good, "{boot:?}");
        }
        for bad in ["", "a\nb", "a\0", "\u{1b}[2J", &"x".repeat(257)] {
            assert!(
                serde_json::from_value::<LogPattern>(read(bad)).is_err(),
                "{bad:?}"
            );
        }
        assert!(serde_json::from_value::<LogPattern>(read("--help")).is_ok());
    }

    #[test]
    fn a_priority_has_a_number_and_a_name() {
        assert_eq!(LogPriority::of_number("3"), Some(LogPriority::Err));
        for none in ["8", "-1", "", "x"] {
            assert_eq!(LogPriority::of_number(none), None, "{none}");
        }
        for priority in LogPriority::ALL {
            assert_eq!(serde_json::to_value(priority).unwrap(), priority.as_str());
        }
    }
}
