//! Notifications from the server to clients.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::level::LogSeverity;

/// The initial buffer size, in bytes: most notifications fit.
const ROOM: usize = 384;

/// A notification to a client.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification {
    /// Its method.
    pub method: &'static str,
    /// Its parameters.
    pub params: Map<String, Value>,
    /// The event id on resumable streams: the state's revision.
    pub revision: Option<u64>,
}

impl Notification {
    /// Returns a notification of this method.
    pub fn new(method: &'static str, params: Value) -> Self {
        let params = match params {
            Value::Object(params) => params,
            _ => Map::new(),
        };
        Self {
            method,
            params,
            revision: None,
        }
    }

    /// Returns a notification of a call's progress.
    pub fn progress(
        token: &Value,
        progress: f64,
        total: Option<f64>,
        message: Option<&str>,
    ) -> Self {
        let mut params = Map::from_iter([
            ("progressToken".to_owned(), token.clone()),
            ("progress".to_owned(), json!(progress)),
        ]);
        params.extend(total.map(|total| ("total".to_owned(), json!(total))));
        params.extend(message.map(|message| ("message".to_owned(), json!(message))));
        Self {
            method: "notifications/progress",
            params,
            revision: None,
        }
    }

    /// Returns a log message.
    pub fn message(level: LogSeverity, logger: &str, data: &Value) -> Self {
        Self::new(
            "notifications/message",
            json!({ "level": level, "logger": logger, "data": data }),
        )
    }

    /// Returns a notification that a resource has changed, for resources whose changes are not revisions.
    pub fn resource_changed(uri: &str) -> Self {
        Self::new("notifications/resources/updated", json!({ "uri": uri }))
    }

    /// Returns a notification that a resource has changed.
    pub fn resource_updated(uri: &str, revision: u64) -> Self {
        let mut note = Self::resource_changed(uri);
        note.revision = Some(revision);
        // The client can query the changes since the last revision that it knows.
        note.with_meta("gatewren/revision", json!(revision))
    }

    /// Adds a key to the parameters' `_meta`.
    #[must_use]
    pub fn with_meta(mut self, key: &str, value: Value) -> Self {
        let meta = self.params.entry("_meta").or_insert_with(|| json!({}));
        if let Some(meta) = meta.as_object_mut() {
            meta.insert(key.to_owned(), value);
        }
        self
    }

    /// Returns the notification's bytes.
    pub fn write(&self) -> Vec<u8> {
        // The parameters are serialized without a copy: for a thousand streams that would be a thousand trees.
        let mut bytes = Vec::with_capacity(ROOM);
        bytes.extend_from_slice(br#"{"jsonrpc":"2.0","method":""#);
        // All methods are ours, and none has a character that JSON would escape.
        bytes.extend_from_slice(self.method.as_bytes());
        bytes.extend_from_slice(br#"","params":"#);
        if serde_json::to_writer(&mut bytes, &self.params).is_err() {
            return Vec::new();
        }
        bytes.push(b'}');
        bytes
    }
}

/// A notification as text that many receivers share: as it is, or with a mark in `_meta` that each has for itself.
#[derive(Debug)]
pub struct SharedNotification {
    /// The text without a mark.
    pub plain: Bytes,
    /// The text around the mark.
    before: Bytes,
    after: Bytes,
}

impl SharedNotification {
    /// Writes a notification; `key` is the name of the mark.
    ///
    /// Fast path: a notification to one more subscriber copies this text instead of writing its own.
    pub fn new(note: Notification, key: &str) -> Self {
        let plain = Bytes::from(note.write());
        let mut marked = Bytes::from(note.with_meta(key, Value::Null).write());
        let entry = format!("{}:null", Value::from(key));
        // The last one: below `_meta`, only text that the server does not write could come after it.
        let ends = marked
            .windows(entry.len())
            .rposition(|part| part == entry.as_bytes());
        let ends = ends.map_or(0, |starts| starts + entry.len());
        let after = marked.split_off(ends);
        marked.truncate(ends.saturating_sub("null".len()));
        Self {
            plain,
            before: marked,
            after,
        }
    }

    /// The parts of the text with this mark, which is JSON.
    pub fn marked<'a>(&'a self, mark: &'a str) -> [&'a [u8]; 3] {
        [&self.before, mark.as_bytes(), &self.after]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_receiver_of_a_shared_notification_has_its_own_mark_and_nothing_else_differs() {
        let updated = Notification::resource_updated("gatewren:///a\"z:null,\"z\":null", 7);
        let patches = json!([{ "z": null, "~": 1 }]);
        let changed = Notification::resource_changed("gatewren:///changes/1");
        for note in [updated.clone().with_meta("y", patches), updated, changed] {
            let shared = SharedNotification::new(note.clone(), "z");
            assert_eq!(shared.plain, note.write());
            for mark in [json!(null), json!(12), json!("a\"b")] {
                let own = note.clone().with_meta("z", mark.clone());
                let mark = mark.to_string();
                assert_eq!(shared.marked(&mark).concat(), own.write());
            }
        }
    }

    #[test]
    fn its_bytes_are_those_of_its_json() {
        let note = Notification::resource_updated("gatewren:///public/\"x", 7)
            .with_meta("gatewren/after", json!(6));
        let whole = json!({ "jsonrpc": "2.0", "method": note.method, "params": note.params });
        assert_eq!(str::from_utf8(&note.write()).unwrap(), whole.to_string());
    }
}
