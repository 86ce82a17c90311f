//! The changes of the state in words: a line for each value, with the values in between.

use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;

use gatewren_base::sys::{neutralise, rfc3339};
use gatewren_store::state::{PatchOperation, Revision};

/// The most values that are kept; changes of further ones are counted.
const MAX_VALUES: usize = 4096;

/// How many of the values that a place had are shown, the last ones.
const SHOWN_VALUES: usize = 4;

/// The longest value that is shown, in characters. Of a longer one the line says only that it changed.
const SHOWN_CHARS: usize = 48;

/// What each line takes in the JSON of an answer beside its text, in bytes.
pub const LINE_OVERHEAD: usize = 8;

/// Facts that follow from others, or say nothing to a person.
const LEFT_OUT: [&str; 3] = ["init_pid", "name", "runtime"];

/// The facts that stand for a container, a notification and a unit, in this order.
const TELLING: [&str; 3] = ["status", "title", "active"];

/// The changes of a time.
#[derive(Debug, Default)]
pub struct StateSummary {
    values: BTreeMap<ValuePlace, ValueChanges>,
    /// How many changes of other values there were.
    further: usize,
}

/// Where a value is; they are sorted by what a person asks for first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ValuePlace {
    subject: StateSubject,
    /// The keys below the subject, such as `engine.health`; empty for the subject itself.
    field: String,
}

/// What a part of the document describes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum StateSubject {
    Container(String),
    Unit(String),
    Host,
    Notification(String),
    Other(String),
}

/// How a value changed.
#[derive(Debug, Default)]
struct ValueChanges {
    count: usize,
    /// The last values; `None` for one that was removed.
    last: VecDeque<Option<String>>,
    at_ms: u64,
    actor: String,
    cause: Option<String>,
}

impl StateSummary {
    /// Adds the next revision.
    pub fn add(&mut self, revision: &Revision) {
        for operation in revision.patch.operations() {
            let (path, value) = match operation {
                PatchOperation::Add { path, value } | PatchOperation::Replace { path, value } => {
                    (path, Some(value))
                }
                PatchOperation::Remove { path } => (path, None),
                PatchOperation::Test { .. } => continue,
            };
            self.take(path.tokens(), value, revision);
        }
    }

    /// Adds a change of one place. A container or a unit that comes with others is one place each.
    fn take(&mut self, tokens: &[String], value: Option<&Value>, revision: &Revision) {
        let is_collection = match tokens {
            [] => true,
            [public] => public == "public",
            [_, part] => ["packageData", "notifications"].contains(&part.as_str()),
            _ => false,
        };
        // What the host and its units were when they were first observed is no change.
        if matches!(tokens, [_, part] if part == "serverInfo" || part == "units") && value.is_some()
        {
            return;
        }
        if let (true, Some(Value::Object(all))) = (is_collection, value) {
            for (key, value) in all {
                let below = [tokens, std::slice::from_ref(key)].concat();
                self.take(&below, Some(value), revision);
            }
            return;
        }
        let Some(place) = ValuePlace::of(tokens) else {
            return;
        };
        let is_new = !self.values.contains_key(&place);
        if is_new && self.values.len() >= MAX_VALUES {
            self.further += 1;
            return;
        }
        let changes = self.values.entry(place).or_default();
        changes.count += 1;
        changes.last.push_back(value.map(short));
        if changes.last.len() > SHOWN_VALUES {
            changes.last.pop_front();
        }
        changes.at_ms = revision.at_ms;
        revision.actor.clone_into(&mut changes.actor);
        changes.cause.clone_from(&revision.cause);
    }

    /// Returns the lines that fit into `most` bytes, and how many do not.
    pub fn lines(&self, most: usize) -> (Vec<String>, usize) {
        let (mut lines, mut bytes) = (Vec::new(), 0);
        for (place, changes) in &self.values {
            let line = format!("{place}{changes}");
            bytes += line.len() + LINE_OVERHEAD;
            if bytes > most {
                break;
            }
            lines.push(line);
        }
        let left_out = self.values.len() - lines.len() + self.further;
        (lines, left_out)
    }
}

impl ValuePlace {
    /// Returns the place for these keys; `None` for one that says nothing to a person.
    fn of(tokens: &[String]) -> Option<Self> {
        let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
        let (subject, below) = match tokens.as_slice() {
            ["public", "packageData", name, below @ ..] => {
                (StateSubject::Container((*name).to_owned()), below)
            }
            ["public", "units", name, below @ ..] => {
                (StateSubject::Unit((*name).to_owned()), below)
            }
            ["public", "serverInfo", below @ ..] => (StateSubject::Host, below),
            ["public", "notifications", _] | ["public", "notifications", .., "seen"] => {
                return None;
            }
            ["public", "notifications", whose, below @ ..] => {
                (StateSubject::Notification((*whose).to_owned()), below)
            }
            // `state_get` shows whether something can be observed, and a read message is no change of the server.
            ["public", "observer", ..] => return None,
            ["public", rest @ ..] => (StateSubject::Other(rest.join("/")), [].as_slice()),
            _ => return None,
        };
        let is_left_out = below.first().is_some_and(|field| LEFT_OUT.contains(field));
        (!is_left_out).then(|| Self {
            subject,
            field: below.join("."),
        })
    }
}

/// Replaces the time of a revision, `at_ms`, by `at`, the form that all answers have.
pub fn with_time(mut revision: Value) -> Value {
    if let Some(fields) = revision.as_object_mut()
        && let Some(at_ms) = fields.remove("at_ms").and_then(|at_ms| at_ms.as_u64())
    {
        fields.insert("at".to_owned(), rfc3339(at_ms).into());
    }
    revision
}

/// Returns a value in a few words. Texts of other programs are neutralised.
fn short(value: &Value) -> String {
    let text = match value {
        Value::Object(facts) => match TELLING.iter().find_map(|key| facts.get(*key)?.as_str()) {
            Some(fact) => fact.to_owned(),
            None => format!("{} facts", facts.len()),
        },
        Value::Array(all) => {
            let plain = all.iter().all(|one| !one.is_object() && !one.is_array());
            let words = || all.iter().map(short).collect::<Vec<_>>().join(", ");
            if plain && !all.is_empty() {
                words()
            } else {
                format!("{} entries", all.len())
            }
        }
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if text.chars().count() > SHOWN_CHARS {
        return "a long value".to_owned();
    }
    neutralise(&text).into_owned()
}

impl std::fmt::Display for ValuePlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.subject {
            StateSubject::Container(name) => write!(f, "container {}", neutralise(name))?,
            StateSubject::Unit(name) => write!(f, "unit {}", neutralise(name))?,
            StateSubject::Host => write!(f, "host")?,
            StateSubject::Notification(whose) => {
                write!(f, "notifications of {}", neutralise(whose))?;
            }
            StateSubject::Other(path) => write!(f, "{}", neutralise(path))?,
        }
        if self.field.is_empty() {
            return Ok(());
        }
        write!(f, ", {}", neutralise(&self.field))
    }
}

impl std::fmt::Display for ValueChanges {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words = |value: &Option<String>| value.clone().unwrap_or_else(|| "removed".to_owned());
        let values: Vec<String> = self.last.iter().map(words).collect();
        write!(f, ": {}", values.join(" -> "))?;
        if self.count > self.last.len() {
            write!(f, " ({} changes)", self.count)?;
        }
        write!(
            f,
            "; {} by {}",
            rfc3339(self.at_ms),
            neutralise(&self.actor)
        )?;
        match &self.cause {
            Some(cause) => write!(f, ", call {}", neutralise(cause)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use gatewren_store::state::Patch;

    use super::*;

    fn revision(id: u64, patch: Value) -> Revision {
        Revision {
            id,
            at_ms: 1_000 * id,
            actor: "observer".to_owned(),
            cause: (id == 3).then(|| "c3".to_owned()),
            patch: Patch::from_value(patch).unwrap(),
        }
    }

    #[test]
    fn each_value_is_a_line_with_all_that_it_was() {
        let mut summary = StateSummary::default();
        let web = "/public/packageData/web";
        let of = |field: &str| format!("{web}/{field}");
        for (id, patch) in [
            (
                1,
                json!([{ "op": "add", "path": "/public/packageData", "value": {
                "web": { "status": "running", "autostart": true }, "db": { "status": "stopped" } } }]),
            ),
            (
                2,
                json!([{ "op": "replace", "path": of("status"), "value": "stopped" },
                       { "op": "replace", "path": of("init_pid"), "value": 5 }]),
            ),
            (
                3,
                json!([{ "op": "replace", "path": of("status"), "value": "running" }]),
            ),
            (
                4,
                json!([{ "op": "remove", "path": "/public/packageData/db" },
                       { "op": "replace", "path": "/public/serverInfo/hostname", "value": "a\u{1b}b" }]),
            ),
        ] {
            summary.add(&revision(id, patch));
        }
        let (lines, left_out) = summary.lines(7000);
        let expected = [
            "container db: stopped -> removed; 1970-01-01T00:00:04.000Z by observer",
            "container web: running; 1970-01-01T00:00:01.000Z by observer",
            "container web, status: stopped -> running; 1970-01-01T00:00:03.000Z by observer, call c3",
            "host, hostname: a^[b; 1970-01-01T00:00:04.000Z by observer",
        ];
        assert_eq!((lines, left_out), (expected.map(str::to_owned).to_vec(), 0));
    }

    #[test]
    fn first_observations_and_marks_of_readers_are_no_changes() {
        let mut summary = StateSummary::default();
        summary.add(&revision(
            1,
            json!([{ "op": "add", "path": "/public", "value": {
                "serverInfo": { "hostname": "box" },
                "units": { "ssh.service": { "active": "active" } },
                "observer": { "units": { "available": true } },
                "packageData": { "units": { "status": "running" } },
            } }]),
        ));
        summary.add(&revision(
            2,
            json!([
                { "op": "add", "path": "/public/units/web.service", "value": { "active": "failed", "sub": "failed" } },
                { "op": "add", "path": "/public/notifications/host", "value": {} },
                { "op": "add", "path": "/public/notifications/host/1", "value": { "title": "disk is full", "level": "error" } },
                { "op": "replace", "path": "/public/notifications/host/1/seen", "value": true },
                { "op": "replace", "path": "/public/observer/units/available", "value": false },
            ]),
        ));
        let (lines, _) = summary.lines(7000);
        let expected = [
            "container units: running; 1970-01-01T00:00:01.000Z by observer",
            "unit web.service: failed; 1970-01-01T00:00:02.000Z by observer",
            "notifications of host, 1: disk is full; 1970-01-01T00:00:02.000Z by observer",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn what_flaps_and_what_is_long_stays_short() {
        let mut summary = StateSummary::default();
        for id in 0..1000 {
            let status = if id % 2 == 0 { "running" } else { "stopped" };
            let note = "x".repeat(10_000);
            summary.add(&revision(
                id,
                json!([
                    { "op": "add", "path": "/public/packageData/web/status", "value": status },
                    { "op": "add", "path": format!("/public/notes/{id}"), "value": note },
                ]),
            ));
        }
        let (lines, left_out) = summary.lines(7000);
        assert!(lines[0].contains("running -> stopped -> running -> stopped (1000 changes)"));
        assert!(lines[1].contains(": a long value;"), "{}", lines[1]);
        assert!(lines.iter().map(String::len).sum::<usize>() <= 7000);
        assert_eq!(lines.len() + left_out, 1001);
    }
}
