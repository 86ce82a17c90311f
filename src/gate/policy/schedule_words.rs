//! A proposed schedule in words, for the person who decides: the exact call, and its times.

use serde_json::{Map, Value};

use gatewren_base::sys::{Calendar, exact_line, now_ms, rfc3339};

/// The tool that creates schedules.
const CREATES: &str = "schedule_create";

/// The number of upcoming times in the words.
const UPCOMING: usize = 3;

/// Describes the schedule that a call of this tool creates, on one line. `None` for other tools, and for arguments that
/// the tool refuses.
pub fn schedule_words(tool: &str, arguments: &Map<String, Value>) -> Option<String> {
    if tool != CREATES {
        return None;
    }
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let calendar: Calendar = text("at")?.parse().ok()?;
    let call = arguments
        .get("arguments")
        .map_or_else(|| "{}".to_owned(), Value::to_string);
    let next = calendar.upcoming(now_ms(), UPCOMING).into_iter();
    let next: Vec<String> = next.map(rfc3339).collect();
    let catch_up = match arguments.get("catch_up") {
        Some(Value::Bool(false)) => "A missed run is not made up for",
        _ => "A missed run is made up for once",
    };
    Some(exact_line(&format!(
        "Run {} {call} {}. Next: {}. {catch_up}.",
        text("tool")?,
        calendar.words(),
        next.join(", ")
    )))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_proposed_schedule_is_described_with_its_exact_call_and_its_times() {
        let arguments = json!({
            "name": "n", "tool": "backup_create", "arguments": { "target": "usb" }, "at": "*-*-* 03:00 UTC",
        });
        let words = schedule_words(CREATES, arguments.as_object().unwrap()).unwrap();
        let expected = r#"Run backup_create {"target":"usb"} every day at 03:00 (in UTC). Next: 2"#;
        assert!(words.starts_with(expected), "{words}");
        assert!(
            words.ends_with("A missed run is made up for once."),
            "{words}"
        );
        assert_eq!(
            schedule_words("backup_create", arguments.as_object().unwrap()),
            None
        );
    }
}
