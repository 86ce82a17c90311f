//! JSON that is already serialized: it is copied into a response without being parsed again.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Value, json};

/// One JSON value as its compact text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SerializedJson(String);

impl SerializedJson {
    /// Serializes data.
    ///
    /// # Errors
    /// When the data is not JSON: an object whose keys are not strings.
    pub fn of(data: &impl Serialize) -> serde_json::Result<Self> {
        serde_json::to_string(data).map(Self)
    }

    /// Returns an object without members.
    pub fn nothing() -> Self {
        Self("{}".to_owned())
    }

    /// Its text.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Returns whether it is an object.
    pub fn is_object(&self) -> bool {
        self.0.starts_with('{')
    }

    /// Sets a number as a member, if it is an object.
    pub fn set(&mut self, name: &'static str, number: u64) {
        if !self.is_object() {
            return;
        }
        // The name may occur already, as a member or somewhere deeper: only parsing can tell.
        if self.0.contains(name) {
            let mut read = self.to_value();
            if let Some(members) = read.as_object_mut() {
                members.insert(name.to_owned(), json!(number));
            }
            self.0 = read.to_string();
            return;
        }
        self.0.pop();
        let comma = if self.0 == "{" { "" } else { "," };
        // Writing to a string cannot fail.
        let _ = write!(self.0, "{comma}\"{name}\":{number}}}");
    }

    /// Parses it into a value.
    pub fn to_value(&self) -> Value {
        // It was serialized here, so it can be parsed.
        serde_json::from_str(&self.0).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to_serialized(value: &Value) -> SerializedJson {
        SerializedJson::of(value).unwrap()
    }

    #[test]
    fn a_number_is_put_in_once() {
        let set = |value: Value| {
            let mut written = to_serialized(&value);
            written.set("revision", 7);
            written.to_value()
        };
        assert_eq!(set(json!({})), json!({ "revision": 7 }));
        assert_eq!(set(json!({ "a": [] })), json!({ "a": [], "revision": 7 }));
        assert_eq!(set(json!({ "revision": 1 })), json!({ "revision": 7 }));
        let deeper = set(json!({ "a": { "revision": 1 } }));
        assert_eq!(deeper, json!({ "a": { "revision": 1 }, "revision": 7 }));
        assert_eq!(set(json!([1])), json!([1]));
    }
}
