//! Takes secrets out of what is written down: by the names of fields, and by what a text looks like.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// What stands in place of a secret.
const GONE: &str = "[redacted]";

/// How deep a value is looked into; what is deeper is left out whole.
const MAX_DEPTH: usize = 32;

/// The longest text that is kept; a longer one is cut, and says so.
const MAX_TEXT_BYTES: usize = 4096;

/// The most entries of a list or an object that are kept; the rest is left out, and it says so.
const MAX_ENTRIES: usize = 256;

/// Words that make a name one of a secret, wherever they stand in it.
const SECRET_WORDS: [&str; 15] = [
    "authorization",
    "apikey",
    "cookie",
    "credential",
    "credentials",
    "key",
    "keys",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "pwd",
    "secret",
    "secrets",
    "token",
];

/// A copy of a value without its secrets, and of a bounded size.
pub fn redact(value: &Value) -> Value {
    within(value, MAX_DEPTH)
}

fn within(value: &Value, depth: usize) -> Value {
    match value {
        Value::String(text) => Value::String(shortened(&redact_text(text))),
        Value::Array(_) | Value::Object(_) if depth == 0 => "[too deep]".into(),
        Value::Array(list) => {
            let kept = list.iter().take(MAX_ENTRIES);
            let mut kept: Vec<Value> = kept.map(|entry| within(entry, depth - 1)).collect();
            kept.extend(left_out(list.len()).map(Value::String));
            Value::Array(kept)
        }
        Value::Object(fields) => {
            let kept = fields.iter().take(MAX_ENTRIES);
            let mut kept: Map<String, Value> = kept
                .map(|(name, value)| (shortened(name), field(name, value, depth)))
                .collect();
            kept.extend(left_out(fields.len()).map(|note| ("…".to_owned(), note.into())));
            Value::Object(kept)
        }
        other => other.clone(),
    }
}

fn field(name: &str, value: &Value, depth: usize) -> Value {
    if is_secret_name(name) && !value.is_null() && !value.is_boolean() {
        GONE.into()
    } else {
        within(value, depth - 1)
    }
}

fn left_out(length: usize) -> Option<String> {
    let more = length.checked_sub(MAX_ENTRIES).filter(|more| *more > 0)?;
    Some(format!("[{more} more]"))
}

fn shortened(text: &str) -> String {
    if text.len() <= MAX_TEXT_BYTES {
        return text.to_owned();
    }
    let mut end = MAX_TEXT_BYTES;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let (kept, rest) = text.split_at(end);
    format!("{kept}[{} more bytes]", rest.len())
}

/// Whether a field, a variable or an option of that name holds a secret.
fn is_secret_name(name: &str) -> bool {
    let mut word = String::new();
    let mut was_lower = false;
    for c in name.chars().take(256) {
        // `apiKey` is two words, and so is `api_key`.
        let begins = !c.is_alphanumeric() || c.is_uppercase() && was_lower;
        if begins && is_secret_word(&word) {
            return true;
        }
        if begins {
            word.clear();
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase();
    }
    is_secret_word(&word)
}

fn is_secret_word(word: &str) -> bool {
    SECRET_WORDS.contains(&word)
        || ["password", "passwd", "token", "secret"]
            .iter()
            .any(|end| word.ends_with(end))
}

/// A text without the secrets that can be told by their looks: private keys in PEM, tokens of ours,
/// what follows `Bearer`, `Basic` or `--password`, the value of `NAME=value` where the name is one
/// of a secret, and passwords in URLs.
pub fn redact_text(text: &str) -> Cow<'_, str> {
    let without_keys = without_private_keys(text);
    let mut out = String::with_capacity(without_keys.len());
    let mut next_is_secret = false;
    for piece in without_keys.split_inclusive(|c: char| c.is_whitespace()) {
        let word = piece.trim_end();
        let space = piece.get(word.len()..).unwrap_or("");
        if word.is_empty() {
            out.push_str(space);
            continue;
        }
        if next_is_secret && !word.starts_with('-') {
            out.push_str(GONE);
        } else {
            out.push_str(&redact_word(word));
        }
        next_is_secret = announces_secret(word, next_is_secret);
        out.push_str(space);
    }
    if out == text {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(out)
    }
}

/// Whether the word after this one is a secret.
fn announces_secret(word: &str, was_secret: bool) -> bool {
    let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
    let scheme = bare.eq_ignore_ascii_case("bearer") || bare.eq_ignore_ascii_case("basic");
    let option = word.starts_with("--") && !word.contains('=') && is_secret_name(word);
    let header = word.ends_with(':') && is_secret_name(word);
    // `Authorization: Bearer x`: the header's secret is two words.
    (scheme && (was_secret || bare.eq_ignore_ascii_case("bearer"))) || option || header
}

/// One after the other: a word can hold several secrets.
fn redact_word(word: &str) -> Cow<'_, str> {
    let mut word = without_our_tokens(word);
    if let Some(without) = without_password_in_url(&word) {
        word = without.into();
    }
    match word.split_once('=') {
        Some((name, value)) if !value.is_empty() && is_secret_name(name) => {
            format!("{name}={GONE}").into()
        }
        _ => word,
    }
}

fn without_password_in_url(word: &str) -> Option<String> {
    let (scheme, rest) = word.split_once("://")?;
    let (user, host) = rest.split_once('@')?;
    let (user, _) = user
        .split_once(':')
        .filter(|(user, _)| !user.contains('/'))?;
    Some(format!("{scheme}://{user}:{GONE}@{host}"))
}

/// `gw_` and the 49 characters after it, wherever they stand in a word.
fn without_our_tokens(word: &str) -> Cow<'_, str> {
    const BODY: usize = 49;
    let mut out = String::new();
    let mut rest = word;
    while let Some(at) = rest.find("gw_") {
        let (before, token) = rest.split_at(at);
        let body = token.bytes().skip(3);
        let length = body
            .take_while(|b| b.is_ascii_alphanumeric() || *b == b'-' || *b == b'_')
            .count();
        // A token with letters lost or added is still most of a token.
        let end = 3 + if length + 16 >= BODY { length } else { 0 };
        let (seen, after) = token.split_at(end);
        out.push_str(before);
        out.push_str(if end > 3 { GONE } else { seen });
        rest = after;
    }
    if out.is_empty() {
        return Cow::Borrowed(word);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// From `-----BEGIN … PRIVATE KEY-----` to its end, or to the end of the text.
fn without_private_keys(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, key)) = around_line(rest, "-----BEGIN ") {
        out.push_str(before);
        out.push_str(GONE);
        rest = around_line(key, "-----END ").map_or("", |(_, after)| after);
    }
    if rest.len() == text.len() {
        return Cow::Borrowed(text);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// What stands before and behind the first line of PEM that begins so and names a private key.
fn around_line<'t>(text: &'t str, begin: &str) -> Option<(&'t str, &'t str)> {
    text.match_indices(begin).find_map(|(at, _)| {
        let label = text.get(at + begin.len()..)?;
        // No further than to the next dash, which a further beginning has: each byte is looked at once.
        let (name, dashes) = label.split_at(label.find('-')?);
        let after = dashes.strip_prefix("-----")?;
        let before = text.get(..at)?;
        name.ends_with("PRIVATE KEY").then_some((before, after))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TOKEN: &str = "gw_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAabcdef";

    #[test]
    fn fields_with_the_name_of_a_secret_lose_their_value() {
        let value = json!({
            "password": "x", "db_password": "x", "apiKey": "x", "api-key": "x", "Authorization": "x",
            "token": 17, "private_key": {"pem": "x"}, "secrets": ["x"], "key": "x",
            "keyboard": "de", "monkey": "m", "max_tokens": 5, "unit": "a.service", "password_set": true,
            "token_hint": null
        });
        let gone = json!({
            "password": GONE, "db_password": GONE, "apiKey": GONE, "api-key": GONE,
            "Authorization": GONE, "token": GONE, "private_key": GONE, "secrets": GONE, "key": GONE,
            "keyboard": "de", "monkey": "m", "max_tokens": 5, "unit": "a.service", "password_set": true,
            "token_hint": null
        });
        assert_eq!(redact(&value), gone);
    }

    #[test]
    fn secrets_are_found_in_the_middle_of_a_command() {
        #[rustfmt::skip]
        let table = [
            ("curl -H 'Authorization: Bearer abc.def' https://x", "curl -H 'Authorization: [redacted] [redacted] https://x"),
            ("PGPASSWORD=hunter2 psql", "PGPASSWORD=[redacted] psql"),
            ("mysql --password hunter2 -u root", "mysql --password [redacted] -u root"),
            ("mysql --password=hunter2", "mysql --password=[redacted]"),
            ("echo 'x-api-key: abc'", "echo 'x-api-key: [redacted]"),
            ("git clone https://me:hunter2@host/x.git", "git clone https://me:[redacted]@host/x.git"),
            ("ls -l /etc/keys  \n\tcat a=b", "ls -l /etc/keys  \n\tcat a=b"),
            ("basic things are fine", "basic things are fine"),
            ("", ""),
        ];
        for (text, expected) in table {
            assert_eq!(redact_text(text), expected);
        }
        assert_eq!(
            redact_text(&format!("a \"{TOKEN}\", b gw_short")),
            format!("a \"{GONE}\", b gw_short")
        );
    }

    #[test]
    fn a_word_that_holds_two_secrets_loses_both() {
        for (text, expected) in [
            (
                format!("{{\"token\":\"{TOKEN}\"}}-b=/"),
                format!("{{\"token\":\"{GONE}\"}}-b={GONE}"),
            ),
            (
                format!("https://me:hunter2@host/?password={TOKEN}"),
                format!("https://me:{GONE}@host/?password={GONE}"),
            ),
            (
                format!("https://me:hunter2@host/{TOKEN}"),
                format!("https://me:{GONE}@host/{GONE}"),
            ),
        ] {
            assert_eq!(redact_text(&text), expected);
        }
    }

    #[test]
    fn private_keys_are_taken_out_whole() {
        let pem = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQ\nEE=\n-----END EC PRIVATE KEY-----";
        let certificate = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----";
        assert_eq!(redact_text(pem), GONE);
        assert_eq!(redact_text(certificate), certificate);
        let both = format!("{certificate}\n{pem}\nafter");
        assert_eq!(redact_text(&both), format!("{certificate}\n{GONE}\nafter"));
        let cut = "x -----BEGIN PRIVATE KEY-----\nMHcCAQ";
        assert_eq!(redact_text(cut), format!("x {GONE}"));
        let cut_and_whole = format!("{cut}\n{pem}\nafter");
        assert_eq!(redact_text(&cut_and_whole), format!("x {GONE}\nafter"));
        let dashes = format!("-----BEGIN PRIVATE x{pem} y");
        assert_eq!(
            redact_text(&dashes),
            format!("-----BEGIN PRIVATE x{GONE} y")
        );
        // Four times what a body of 1 MiB holds, in one pass. Looking through the rest for each of them took
        // four times as long for twice as many.
        let beginnings = "-----BEGIN ".repeat(400_000);
        assert_eq!(redact_text(&beginnings), beginnings);
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

    #[test]
    fn no_bytes_make_it_panic() {
        for text in [
            "gw_",
            "gw_ä",
            "-----BEGIN ",
            "-----BEGIN PRIVATE KEY-----",
            "ä=ß",
            "://@:",
            "=",
            "--",
            ":",
        ] {
            for other in ["", "ä", TOKEN, " Bearer", " x"] {
                let _ = redact_text(&format!("{text}{other}"));
                let _ = redact_text(&format!("{other}{text}"));
            }
        }
    }
}
