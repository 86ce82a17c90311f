//! Recent changes of the state in words, without those that say nothing to a person.

use serde_json::Value;

use super::texts;
use gatewren_store::state::{PatchOperation, Revision};

/// The longest value that is shown, in characters.
const SHOWN: usize = 60;

/// The facts that describe a container or a unit best, in this order.
const MAIN_FACTS: [&str; 3] = ["status", "active", "health"];

/// The parts of the state that the server itself writes.
const OBSERVED: [&str; 3] = ["packageData", "units", "serverInfo"];

/// Describes each operation of a revision that a person wants to read, without repetitions.
pub fn describe_changes(revision: &Revision) -> Vec<String> {
    let is_observed = revision.actor == "observer";
    let mut lines: Vec<String> = Vec::new();
    for operation in revision.patch.operations() {
        let (path, value) = match operation {
            PatchOperation::Add { path, value } | PatchOperation::Replace { path, value } => {
                (path, Some(value))
            }
            PatchOperation::Remove { path } => (path, None),
            PatchOperation::Test { .. } => continue,
        };
        let tokens: Vec<&str> = path.tokens().iter().map(String::as_str).collect();
        // The first look at the host after a start is no change of it.
        if is_observed && matches!(tokens.as_slice(), ["public", part] if OBSERVED.contains(part)) {
            continue;
        }
        if let Some(line) = describe(&tokens, value)
            && !lines.contains(&line)
        {
            lines.push(line);
        }
    }
    lines
}

/// Describes one change; `None` for the server's own notes, and for a notification, which is among the alerts.
fn describe(tokens: &[&str], value: Option<&Value>) -> Option<String> {
    let (subject, below) = match tokens {
        // The status shows that a container was started.
        ["public", "observer" | "notifications", ..] | ["public", "packageData", _, "init_pid"] => {
            return None;
        }
        ["public", "packageData", name, below @ ..] => {
            (format!("{} {name}", texts::CONTAINER), below)
        }
        ["public", "units", name, below @ ..] => (format!("{} {name}", texts::UNIT), below),
        ["public", "serverInfo", below @ ..] => (texts::HOST.to_owned(), below),
        ["public", rest @ ..] | rest => (rest.join("/"), [].as_slice()),
    };
    let field = match below {
        [] | [.., "status" | "active"] => String::new(),
        keys => keys
            .iter()
            .flat_map(|key| [" ".to_owned(), spaced(key)])
            .collect(),
    };
    let change = match value.map(short) {
        None => texts::WAS_REMOVED.to_owned(),
        Some(None) => texts::HAS_CHANGED.to_owned(),
        Some(Some(value)) => format!("{} {value}", texts::IS_NOW),
    };
    Some(format!("{subject}{field} {change}"))
}

/// A value in a few words; `None` for one that has too many.
fn short(value: &Value) -> Option<String> {
    let text = match value {
        Value::Object(facts) => {
            let fact = MAIN_FACTS.iter().find_map(|key| facts.get(*key)?.as_str());
            fact?.to_owned()
        }
        Value::Array(_) => return None,
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    (text.chars().count() <= SHOWN).then_some(text)
}

/// Converts `memoryLimit` and `memory_limit` to `memory limit`.
fn spaced(key: &str) -> String {
    let mut words = String::new();
    for letter in key.chars() {
        match letter {
            '_' => words.push(' '),
            upper if upper.is_ascii_uppercase() => {
                words.push(' ');
                words.push(upper.to_ascii_lowercase());
            }
            other => words.push(other),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewren_store::state::Patch;
    use serde_json::json;

    fn lines(actor: &str, patch: Value) -> Vec<String> {
        describe_changes(&Revision {
            id: 1,
            at_ms: 0,
            actor: actor.to_owned(),
            cause: None,
            patch: Patch::from_value(patch).unwrap(),
        })
    }

    #[test]
    fn the_first_look_at_the_host_is_no_change_and_one_of_another_author_is() {
        for place in ["packageData", "units", "serverInfo"] {
            let first = json!([{ "op": "add", "path": format!("/public/{place}"), "value": {} }]);
            assert!(lines("observer", first.clone()).is_empty(), "{place}");
            assert_eq!(lines("local:cron", first).len(), 1, "{place}");
        }
    }

    #[test]
    fn changes_are_told_in_words() {
        let patch = json!([
            { "op": "replace", "path": "/public/packageData/web/status", "value": "running" },
            { "op": "add", "path": "/public/packageData/db", "value": { "status": "stopped" } },
            { "op": "replace", "path": "/public/packageData/db/memoryLimit", "value": 512 },
            { "op": "remove", "path": "/public/packageData/old" },
            { "op": "replace", "path": "/public/units/ssh.service", "value": { "active": "failed" } },
            { "op": "add", "path": "/public/notifications/host/7", "value": { "title": "The disk is full" } },
            { "op": "add", "path": "/public/ui/notes", "value": { "text": "x" } }
        ]);
        assert_eq!(
            lines("observer", patch),
            [
                "Container web is now running",
                "Container db is now stopped",
                "Container db memory limit is now 512",
                "Container old was removed",
                "Unit ssh.service is now failed",
                "ui/notes has changed",
            ]
        );
    }

    #[test]
    fn the_servers_own_notes_and_notifications_are_left_out() {
        let patch = json!([
            { "op": "replace", "path": "/public/observer/lxc/seen_ms", "value": 5 },
            { "op": "add", "path": "/public/notifications/host/7/seen", "value": true },
            { "op": "replace", "path": "/public/packageData/web/init_pid", "value": 7 },
            { "op": "remove", "path": "/public/notifications/host/7" }
        ]);
        assert!(lines("observer", patch).is_empty());
    }
}
