//! Redacts secrets before data is logged or stored: by field names, and by the shape of a text.

use serde_json::{Map, Value};

use super::redact_text::{SecretAnnouncement, redact_after, redact_text};
use super::secret_names::is_secret_name;
use super::secret_shapes::GONE;

/// The deepest level that is examined; deeper values are left out as a whole.
const MAX_DEPTH: usize = 32;

/// The longest text that is kept; a longer one is cut, with a note.
const MAX_TEXT_BYTES: usize = 4096;

/// The most entries of a list or an object that are kept; the rest is left out, with a note.
const MAX_ENTRIES: usize = 256;

/// Returns a copy of a value without its secrets, and of a limited size.
pub fn redact(value: &Value) -> Value {
    redact_nested(value, MAX_DEPTH)
}

fn redact_nested(value: &Value, depth: usize) -> Value {
    match value {
        Value::String(text) => Value::String(shorten(&redact_text(text))),
        Value::Array(_) | Value::Object(_) if depth == 0 => "[too deep]".into(),
        Value::Array(list) => {
            // The list may be the words of a command: one may announce that the next is a secret.
            let mut announced = SecretAnnouncement::default();
            let kept = list.iter().take(MAX_ENTRIES);
            let mut kept: Vec<Value> = kept
                .map(|entry| match entry {
                    Value::String(text) => shorten(&redact_after(text, &mut announced)).into(),
                    other => redact_nested(other, depth - 1),
                })
                .collect();
            kept.extend(omission_note(list.len()).map(Value::String));
            Value::Array(kept)
        }
        Value::Object(fields) => {
            let kept = fields.iter().take(MAX_ENTRIES);
            let mut kept: Map<String, Value> = kept
                .map(|(name, value)| (shorten(&redact_text(name)), field(name, value, depth)))
                .collect();
            kept.extend(omission_note(fields.len()).map(|note| ("…".to_owned(), note.into())));
            Value::Object(kept)
        }
        other => other.clone(),
    }
}

fn field(name: &str, value: &Value, depth: usize) -> Value {
    if is_secret_name(name) && !value.is_null() && !value.is_boolean() {
        GONE.into()
    } else {
        redact_nested(value, depth - 1)
    }
}

fn omission_note(length: usize) -> Option<String> {
    let more = length.checked_sub(MAX_ENTRIES).filter(|more| *more > 0)?;
    Some(format!("[{more} more]"))
}

fn shorten(text: &str) -> String {
    match text.split_at(text.floor_char_boundary(MAX_TEXT_BYTES)) {
        (whole, "") => whole.to_owned(),
        (kept, rest) => format!("{kept}[{} more bytes]", rest.len()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_with_the_name_of_a_secret_lose_their_value() {
        let value = json!({
            "password": "x", "db_password": "x", "apiKey": "x", "api-key": "x", "Authorization": "x",
            "token": 17, "private_key": {"pem": "x"}, "secrets": ["x"], "key": "x",
            "keyboard": "de", "monkey": "m", "max_tokens": 5, "unit": "a.service", "password_set": true,
            "token_hint": null, "argv": ["mysql", "--password", "a b", "x", "-pc"]
        });
        let gone = json!({
            "password": GONE, "db_password": GONE, "apiKey": GONE, "api-key": GONE,
            "Authorization": GONE, "token": GONE, "private_key": GONE, "secrets": GONE, "key": GONE,
            "keyboard": "de", "monkey": "m", "max_tokens": 5, "unit": "a.service", "password_set": true,
            "token_hint": null, "argv": ["mysql", "--password", GONE, "x", "-p[redacted]"]
        });
        assert_eq!(redact(&value), gone);
    }

    #[test]
    fn what_comes_out_is_bounded() {
        let mut deep = json!("x");
        for _ in 0..100 {
            deep = json!([deep]);
        }
        assert!(redact(&deep).to_string().contains("[too deep]"));
        let long = redact(&json!("ä".repeat(5000))).to_string();
        assert!(
            long.len() < 4200 && long.contains("[5904 more bytes]"),
            "{long}"
        );
        let wide = redact(&json!(vec![1; 1000]));
        assert_eq!(wide.as_array().unwrap().len(), 257);
        assert_eq!(wide[256], "[744 more]");
    }
}
