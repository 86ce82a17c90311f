//! Queries of a journal, in types that cannot become a program option or a second line.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::text_type::text_type;
use super::unit_name::UnitName;

/// A query of a journal, with the order of its lines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogQuery {
    /// Only lines of this unit, and systemd's messages about it.
    #[serde(default)]
    pub unit: Option<UnitName>,
    /// Only lines of the kernel.
    #[serde(default)]
    pub kernel: bool,
    /// Only lines of this severity or higher.
    #[serde(default)]
    pub priority: Option<LogPriority>,
    /// Only lines from this time on, in milliseconds since 1970; not allowed with a cursor.
    #[serde(default)]
    pub since_ms: Option<u64>,
    /// Only lines up to this time.
    #[serde(default)]
    pub until_ms: Option<u64>,
    /// Only lines with a message that matches.
    #[serde(default)]
    pub grep: Option<LogPattern>,
    /// Only lines of this boot.
    #[serde(default)]
    pub boot: Option<BootName>,
    /// The line to start from; it is not part of the result.
    #[serde(default)]
    pub cursor: Option<LogCursor>,
    /// The order of lines, and whether to wait for more.
    pub order: LogOrder,
    /// The most lines that are printed, newest first only. The helper ignores it if it hides some lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<u32>,
}

/// The order of lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogOrder {
    /// From the newest line, or from before the cursor, to older ones.
    #[default]
    Older,
    /// From the oldest line, or from after the cursor, to newer ones.
    Newer,
    /// Lines that are written from now on, or those after the cursor and then new ones, until the caller
    /// disconnects.
    Follow,
}

/// The severity of a line, with syslog's names.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum LogPriority {
    /// The system is unusable.
    Emerg,
    /// Immediate action is required.
    Alert,
    /// A critical condition.
    Crit,
    /// An error.
    Err,
    /// A warning.
    Warning,
    /// A normal but significant event.
    Notice,
    /// An informational message.
    Info,
    /// A debug message.
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

    /// The severity's name.
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

    /// Parses syslog's number, 0 to 7.
    pub fn of_number(number: &str) -> Option<Self> {
        let all = Self::ALL.into_iter().zip(0_u8..);
        all.into_iter()
            .find_map(|(priority, of)| (number.parse() == Ok(of)).then_some(priority))
    }
}

text_type!(
    /// A position in a journal, as journald writes it: `s=...;i=...;b=...;m=...;t=...;x=...`.
    LogCursor,
    { "minLength": 1, "maxLength": 512, "pattern": "^[A-Za-z0-9=;_-]+$" },
    |text| (1..=512).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"=;_-".contains(&b)),
    "a cursor must come from an answer of this tool"
);

text_type!(
    /// A boot: `0` for the current one, `-1` for the one before and so on, or its id of 32 hexadecimal digits.
    BootName,
    { "pattern": "^(0|-[0-9]{1,4}|[0-9a-f]{32})$" },
    is_boot,
    "a boot is 0 for this one, -1 for the previous one and so on, or an id of 32 hexadecimal digits"
);

text_type!(
    /// A regular expression (PCRE2) for messages, in one line.
    LogPattern,
    { "minLength": 1, "maxLength": 256 },
    |text| (1..=256).contains(&text.len()) && !text.contains(char::is_control),
    "a pattern is one line of 1 to 256 bytes"
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
