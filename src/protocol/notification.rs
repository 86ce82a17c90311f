//! Notifications from the server to clients.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_bytes_are_those_of_its_json() {
        let note = Notification::resource_updated("gatewren:///public/\"x", 7)
            .with_meta("gatewren/after", json!(6));
        let whole = json!({ "jsonrpc": "2.0", "method": note.method, "params": note.params });
        assert_eq!(str::from_utf8(&note.write()).unwrap(), whole.to_string());
    }
}
