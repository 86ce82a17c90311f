//! The events of an engine: however the bytes are split, the same containers have changed, and nothing but an id and a
//! name comes out of an event.

use gatewren_helper::read_events;
use serde_json::Value;

use super::input::text;

/// First byte: how the rest is split; the rest: the stream.
pub fn are_ids_and_names_alone(data: &[u8]) {
    let Some((&piece, bytes)) = data.split_first() else {
        return;
    };
    let whole = described(bytes, bytes.len());
    assert_eq!(
        described(bytes, usize::from(piece)),
        whole,
        "in pieces of {piece}"
    );
    let ends = bytes.split(|byte| *byte == b'\n').count().saturating_sub(1);
    assert_eq!(whole.len(), ends, "an event a line");
    for (line, event) in bytes
        .split(|byte| *byte == b'\n')
        .zip(read_events(bytes, bytes.len()))
    {
        let Ok(Some(changed)) = event else {
            continue;
        };
        let id = changed.id.as_ref().map(ToString::to_string);
        let is_id = |id: &str| id.len() == 64 && id.bytes().all(|b| b.is_ascii_hexdigit());
        assert!(id.as_deref().is_none_or(is_id), "{id:?}");
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        let name = changed.name.as_deref();
        assert!(
            name.is_none_or(|name| name.chars().all(is_plain)),
            "{name:?}"
        );
        assert!(
            !is_of_a_command(line),
            "an event of a command changes nothing"
        );
    }
}

/// What comes out of each event, as text.
fn described(bytes: &[u8], piece: usize) -> Vec<String> {
    let events = read_events(bytes, piece).into_iter();
    events.map(|event| format!("{event:?}")).collect()
}

/// Whether an event's word is one of a command in the container. Keys that are there twice are read otherwise here.
fn is_of_a_command(line: &[u8]) -> bool {
    let event: Option<Value> = text(line).and_then(|line| serde_json::from_str(line).ok());
    let action = event
        .as_ref()
        .and_then(|event| event.get("Action")?.as_str());
    action.is_some_and(|action| action.starts_with("exec_"))
}
