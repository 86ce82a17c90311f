//! The arguments of a call for the person who decides: complete, never redacted, with notes.

use serde_json::{Map, Value};

use gatewren_base::sys::{exact_line, exact_lines, text_notes};
use gatewren_wire::operations::{BackupKeep, PublicKey};

/// The maximum number of keys to describe in one argument. Further ones are counted.
const MAX_KEYS: usize = 8;

/// The maximum number of words before a key in a line of `authorized_keys`, which are its options.
const MAX_WORDS_BEFORE: usize = 8;

/// The argument of `backup_create` that deletes older backups.
const KEEP: &str = "keep";

/// The note on it.
const DELETION: &str = "after a complete new backup this deletes every older backup of the same container or path \
                        that it does not name to keep";

/// One argument for display.
///
/// Two different values never have the same text with the same `is_text`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownArgument {
    /// The name, on one line.
    pub name: String,
    /// Whether `text` is the argument's own text. Otherwise it is JSON.
    pub is_text: bool,
    /// The complete value, on separate lines.
    pub text: String,
    /// Notes, one a line: the length, unusual characters, and the keys that the value contains.
    pub notes: Vec<String>,
}

/// Returns all arguments, sorted by name.
pub fn shown_arguments(arguments: &Map<String, Value>) -> Vec<ShownArgument> {
    let arguments = arguments.iter();
    arguments
        .map(|(name, value)| shown_argument(name, value))
        .collect()
}

fn shown_argument(name: &str, value: &Value) -> ShownArgument {
    let (is_text, text) = match value {
        Value::String(text) => (true, text.clone()),
        other => (false, pretty(other)),
    };
    let mut notes = text_notes(&text);
    notes.extend(key_notes(value));
    notes.extend(deletion_note(name, value));
    ShownArgument {
        name: exact_line(name),
        is_text,
        text: exact_lines(&text),
        notes,
    }
}

fn pretty(value: &Value) -> String {
    // A value with text keys can always be serialized.
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// Returns a line for each SSH public key in a value: type, fingerprint as in `ssh-keygen -l`, and comment.
pub(super) fn key_notes(value: &Value) -> Vec<String> {
    let mut keys = Vec::new();
    collect_keys(value, &mut keys);
    let more = keys.len().saturating_sub(MAX_KEYS);
    let mut notes: Vec<String> = keys.iter().take(MAX_KEYS).map(key_note).collect();
    if more > 0 {
        notes.push(format!("{more} more SSH public keys"));
    }
    notes
}

/// Returns a note if an argument, or a member in it, makes a backup delete older ones.
pub(super) fn deletion_note(name: &str, value: &Value) -> Option<String> {
    deletes(name, value).then(|| DELETION.to_owned())
}

fn deletes(name: &str, value: &Value) -> bool {
    let is_rule = || serde_json::from_value::<BackupKeep>(value.clone()).is_ok();
    if name == KEEP && is_rule() {
        return true;
    }
    match value {
        Value::Array(list) => list.iter().any(|value| deletes("", value)),
        Value::Object(members) => members.iter().any(|(name, value)| deletes(name, value)),
        _ => false,
    }
}

fn key_note(key: &PublicKey) -> String {
    let comment = match key.comment() {
        "" => "no comment".to_owned(),
        // Quoted as JSON, so that the comment cannot fake its end.
        comment => format!("comment {}", exact_line(&Value::from(comment).to_string())),
    };
    let kind = exact_line(key.kind());
    format!("SSH public key {kind}, {}, {comment}", key.fingerprint())
}

fn collect_keys(value: &Value, keys: &mut Vec<PublicKey>) {
    match value {
        Value::String(text) => keys.extend(text.lines().filter_map(key_in)),
        Value::Array(list) => list.iter().for_each(|value| collect_keys(value, keys)),
        Value::Object(members) => members.values().for_each(|value| collect_keys(value, keys)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns the key in a line, after any options.
fn key_in(line: &str) -> Option<PublicKey> {
    let starts = line.match_indices([' ', '\t']).map(|(at, _)| at);
    let mut starts = std::iter::once(0).chain(starts).take(MAX_WORDS_BEFORE);
    starts.find_map(|at| PublicKey::of_line(line.get(at..)?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const KEY: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEj0lSdKlYVp6ZNLlGWhQoWWaHGMYSH7+k4ZlTmN3izj";
    const FINGERPRINT: &str = "SHA256:/hFyLEs2hVjV5i2Vr2fgDYLD1F724Cx2axHUn6ZN+WQ";

    fn notes(value: &Value) -> Vec<String> {
        key_notes(value)
    }

    #[test]
    fn a_public_key_is_shown_with_the_fingerprint_that_ssh_keygen_prints() {
        let expected = format!("SSH public key ssh-ed25519, {FINGERPRINT}, comment \"me@home\"");
        let line = format!("{KEY} me@home");
        let file = format!("# mine\nfrom=\"10.0.0.1\" {line}\n");
        for value in [json!(line), json!(file), json!({ "a": [line] })] {
            assert_eq!(notes(&value), [expected.as_str()], "{value}");
        }
        assert!(notes(&json!(KEY))[0].ends_with("no comment"));
        assert!(notes(&json!("ssh-ed25519 AAAA x")).is_empty());
    }

    #[test]
    fn a_comment_of_a_key_cannot_pass_for_our_words() {
        let comment = "x\", signed by the owner \u{202e}";
        let note = notes(&json!(format!("{KEY} {comment}"))).remove(0);
        assert!(
            note.ends_with(r#"comment "x\", signed by the owner \u{202e}""#),
            "{note}"
        );
        let many = vec![format!("{KEY} a"); MAX_KEYS + 3].join("\n");
        let all = notes(&json!(many));
        assert_eq!(all.len(), MAX_KEYS + 1);
        assert_eq!(all[MAX_KEYS], "3 more SSH public keys");
    }

    #[test]
    fn an_argument_that_deletes_older_backups_has_a_note() {
        let notes = |value: Value| -> usize {
            let all = shown_arguments(value.as_object().unwrap());
            let notes = all.iter().flat_map(|shown| &shown.notes);
            notes.filter(|note| note.contains("deletes")).count()
        };
        let keep = json!({ "keep": { "daily": 7, "weekly": 4 } });
        assert_eq!(notes(keep.clone()), 1);
        assert_eq!(
            notes(json!({ "call": { "tool": "backup_create", "arguments": keep } })),
            1
        );
        assert_eq!(
            notes(json!({ "keep": true, "calls": [{ "keep": "all" }] })),
            0
        );
    }

    #[test]
    fn a_text_is_told_from_the_json_that_it_imitates() {
        let all = |value: Value| shown_arguments(json!({ "a": value }).as_object().unwrap());
        for (one, other) in [
            (json!("5"), json!(5)),
            (json!("null"), json!(null)),
            (json!("[\n  1\n]"), json!([1])),
            (json!("a"), json!("a ")),
            (json!(1), json!(1.0)),
        ] {
            assert_ne!(all(one), all(other));
        }
    }
}
