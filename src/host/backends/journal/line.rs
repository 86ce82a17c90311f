//! A journal line, parsed from the output of `journalctl -o json`.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::helper_client::{LogCursor, LogPriority};
use gatewren_base::sys::{neutralise, rfc3339};
use gatewren_base::telemetry::redact_text;

/// The maximum length of a message in characters; longer ones are cut.
const MESSAGE_CHARS: usize = 2000;

/// The maximum size of a page's text in bytes; further lines are on the next page.
pub(super) const PAGE_BYTES: usize = 24 * 1024;

/// What a line takes in a page in addition to its message, about.
const OTHER_FIELDS_BYTES: usize = 128;

/// The maximum length of another field.
const WORD_CHARS: usize = 255;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LogLine {
    /// The time when it was written, RFC 3339.
    pub time: String,
    /// Its severity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<LogPriority>,
    /// The unit that wrote it, or the unit that systemd wrote it about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The name that the program reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identifier: Option<String>,
    /// The process id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The message. Recognisable secrets are removed; terminal control characters are spelt out.
    pub message: String,
    /// Whether the message was cut.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Its place in the journal.
    #[serde(skip)]
    #[schemars(skip)]
    pub cursor: LogCursor,
    /// The time when it was written, in milliseconds since 1970.
    #[serde(skip)]
    #[schemars(skip)]
    pub ms: u64,
}

impl LogLine {
    /// What it takes in a page, in bytes.
    pub(super) fn page_bytes(&self) -> usize {
        self.message.len() + OTHER_FIELDS_BYTES
    }

    /// Parses a line's fields; `None` without a time or a cursor.
    pub fn of(fields: &Map<String, Value>) -> Option<Self> {
        let text = |name: &str| fields.get(name).and_then(text_of);
        let word = |name: &str| text(name).map(|text| short(&text, WORD_CHARS).0);
        let ms = text("__REALTIME_TIMESTAMP")?.parse::<u64>().ok()? / 1000;
        let whole = text("MESSAGE").unwrap_or_default();
        // One journal line is shown as one line: text after a line feed could be mistaken for
        // another line.
        let shown = redact_text(&whole).replace('\n', " ⏎ ");
        let (message, truncated) = short(&shown, MESSAGE_CHARS);
        let kernel = || (text("_TRANSPORT")? == "kernel").then(|| "kernel".to_owned());
        Some(Self {
            time: rfc3339(ms),
            priority: text("PRIORITY").and_then(|number| LogPriority::of_number(&number)),
            // A line that systemd writes about a unit belongs to that unit.
            unit: word("UNIT").or_else(|| word("_SYSTEMD_UNIT")),
            identifier: word("SYSLOG_IDENTIFIER")
                .or_else(|| word("_COMM"))
                .or_else(kernel),
            pid: text("_PID").and_then(|pid| pid.parse().ok()),
            message,
            truncated,
            cursor: text("__CURSOR")?.try_into().ok()?,
            ms,
        })
    }
}

/// The format of a log file.
impl fmt::Display for LogLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let priority = self.priority.map_or("-", LogPriority::as_str);
        let who = self.identifier.as_deref().or(self.unit.as_deref());
        write!(f, "{} {priority} {}", self.time, who.unwrap_or("-"))?;
        match self.pid {
            Some(pid) => write!(f, "[{pid}]: {}", self.message),
            None => write!(f, ": {}", self.message),
        }
    }
}

/// Returns a field's text. journalctl prints invalid UTF-8 as a list of bytes, a repeated field as
/// a list of values, and a field that is too long as null.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(list) => {
            let byte = |value: &Value| value.as_u64().and_then(|byte| u8::try_from(byte).ok());
            let bytes: Option<Vec<u8>> = list.iter().map(byte).collect();
            match bytes {
                Some(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
                None => list.first().and_then(text_of),
            }
        }
        _ => None,
    }
}

/// Returns the sanitized beginning of a text, and whether it was cut.
fn short(text: &str, chars: usize) -> (String, bool) {
    let beginning: String = text.chars().take(chars).collect();
    let truncated = beginning.len() < text.len();
    (neutralise(&beginning).into_owned(), truncated)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Printed by journalctl of systemd 252, with the fields that the helper requests.
    const SERVICE: &str = r#"{"__REALTIME_TIMESTAMP":"1785231000125000","_BOOT_ID":"0d47c3a10d47c3a10d47c3a10d47c3a1","_PID":"312","PRIORITY":"6","_COMM":"nginx","__CURSOR":"s=5e;i=2a;b=0d;m=1;t=2;x=3","_SYSTEMD_UNIT":"nginx.service","MESSAGE":"ready","SYSLOG_IDENTIFIER":"nginx","__MONOTONIC_TIMESTAMP":"12345","_TRANSPORT":"stdout"}"#;

    fn line(change: &[(&str, Value)]) -> Option<LogLine> {
        let mut fields: Map<String, Value> = serde_json::from_str(SERVICE).unwrap();
        for (name, value) in change {
            fields.insert((*name).to_owned(), value.clone());
        }
        LogLine::of(&fields)
    }

    #[test]
    fn a_line_is_read() {
        let got = line(&[]).unwrap();
        assert_eq!(got.time, "2026-07-28T09:30:00.125Z");
        assert_eq!(got.priority, Some(LogPriority::Info));
        assert_eq!(got.unit.as_deref(), Some("nginx.service"));
        assert_eq!((got.pid, got.message.as_str()), (Some(312), "ready"));
        let data = serde_json::to_value(&got).unwrap();
        assert!(data.get("cursor").is_none() && data.get("truncated").is_none());
    }

    #[test]
    fn what_systemd_says_of_a_unit_is_about_that_unit() {
        let got = line(&[
            ("UNIT", "cups.service".into()),
            ("_SYSTEMD_UNIT", "init.scope".into()),
        ]);
        assert_eq!(got.unwrap().unit.as_deref(), Some("cups.service"));
    }

    #[test]
    fn bytes_controls_secrets_and_lists_are_told_as_text() {
        let message = |value: Value| line(&[("MESSAGE", value)]).unwrap().message;
        let bytes: Vec<u8> = b"\x1b[2Jgone\xff".to_vec();
        assert_eq!(message(bytes.into()), "^[[2Jgone\u{fffd}");
        assert_eq!(
            message("a\u{202e}b\nJul 28 root: forged".into()),
            "a<U+202E>b ⏎ Jul 28 root: forged"
        );
        assert_eq!(message(serde_json::json!(["first", "second"])), "first");
        assert_eq!(message(Value::Null), "");
        let text = message("login with password=hunter2hunter2 from box".into());
        assert!(!text.contains("hunter2"), "{text}");
    }

    #[test]
    fn a_long_message_is_cut_and_says_so() {
        let got = line(&[("MESSAGE", "ä".repeat(5000).into())]).unwrap();
        assert_eq!(
            (got.message.chars().count(), got.truncated),
            (MESSAGE_CHARS, true)
        );
    }

    #[test]
    fn what_is_no_line_is_none() {
        assert_eq!(line(&[("__CURSOR", "--merge --all".into())]), None);
        assert_eq!(line(&[("__REALTIME_TIMESTAMP", "soon".into())]), None);
        assert_eq!(LogLine::of(&Map::new()), None);
    }

    #[test]
    fn the_kernel_is_who_it_says() {
        let kernel = r#"{"__REALTIME_TIMESTAMP":"1785231000125000","__CURSOR":"s=1","PRIORITY":"4","MESSAGE":"usb 1-1: reset","_TRANSPORT":"kernel"}"#;
        let got = LogLine::of(&serde_json::from_str(kernel).unwrap()).unwrap();
        assert_eq!(got.identifier.as_deref(), Some("kernel"));
        assert_eq!((got.unit, got.pid), (None, None));
    }
}
