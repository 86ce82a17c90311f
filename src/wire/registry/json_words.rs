//! Translates serde's error messages: its words are Rust's types, and a client knows only those of JSON.

/// What serde expects, as its own types and the derived code name it, and what that is in JSON.
const EXPECTED: &[(&str, &str)] = &[
    ("u8", "a whole number from 0 to 255"),
    ("u16", "a whole number from 0 to 65535"),
    ("u32", "a whole number from 0 to 4294967295"),
    ("u64", "a whole number of at least 0"),
    ("u128", "a whole number of at least 0"),
    ("usize", "a whole number of at least 0"),
    ("a nonzero u8", "a whole number from 1 to 255"),
    ("a nonzero u16", "a whole number from 1 to 65535"),
    ("a nonzero u32", "a whole number from 1 to 4294967295"),
    ("a nonzero u64", "a whole number of at least 1"),
    ("a nonzero usize", "a whole number of at least 1"),
    ("i8", "a whole number from -128 to 127"),
    ("i16", "a whole number of 16 bits"),
    ("i32", "a whole number from -2147483648 to 2147483647"),
    ("i64", "a whole number"),
    ("i128", "a whole number"),
    ("isize", "a whole number"),
    ("f32", "a number"),
    ("f64", "a number"),
    ("bool", "a boolean"),
    ("a map", "an object"),
    ("a sequence", "an array"),
    ("a borrowed string", "a string"),
    ("a character", "a string of one character"),
    ("a char", "a string of one character"),
    ("a unit", "null"),
    ("unit", "null"),
    ("option", "a value or null"),
    ("any value", "a value"),
    ("map", "an object"),
    ("string or map", "a string"),
    ("map with a single key", "a string"),
    ("variant identifier", "a string"),
    ("field identifier", "a string"),
    ("identifier", "a string"),
];

/// Beginnings of what derived code expects; a Rust name follows, which says nothing to a client.
const EXPECTED_KINDS: &[(&str, &str)] = &[
    ("struct variant ", "an object"),
    ("tuple variant ", "an array"),
    ("newtype variant ", "a value"),
    ("unit variant ", "a string"),
    ("newtype struct ", "a value"),
    ("tuple struct ", "an array"),
    ("unit struct ", "null"),
    ("struct ", "an object"),
    ("internally tagged enum ", "an object"),
    ("adjacently tagged enum ", "an object"),
    ("enum ", "a string"),
    ("a tuple of size ", "an array of "),
    ("an array of length ", "an array of "),
];

/// What was there instead. Behind some a value follows.
const FOUND: &[(&str, &str)] = &[
    ("floating point ", "number "),
    ("character ", "string "),
    ("unit value", "null"),
    ("Option value", "a value"),
    ("newtype struct", "a value"),
    ("newtype variant", "an object"),
    ("struct variant", "an object"),
    ("tuple variant", "an array"),
    ("unit variant", "a string"),
    ("byte array", "an array"),
    ("sequence", "an array"),
    ("map", "an object"),
    ("enum", "an object"),
];

/// Returns serde's message in the words of JSON. A message that the project wrote itself is returned unchanged.
pub fn json_words(message: &str) -> String {
    for kind in ["invalid type: ", "invalid value: ", "invalid length "] {
        let Some(rest) = message.strip_prefix(kind) else {
            continue;
        };
        // The value may itself contain these words; what is expected is the last part.
        let Some((found, expected)) = rest.rsplit_once(", expected ") else {
            break;
        };
        let found = match kind {
            "invalid length " => format!("{found} items"),
            _ => found_words(found),
        };
        return format!("expected {}, not {found}", expected_words(expected));
    }
    if let Some(rest) = message.strip_prefix("unknown variant ") {
        return format!("unknown value {rest}");
    }
    if message.starts_with("data did not match any variant of untagged enum") {
        return "the value has none of the forms that are allowed here".to_owned();
    }
    message.to_owned()
}

fn expected_words(expected: &str) -> String {
    if let Some((_, words)) = EXPECTED.iter().find(|(theirs, _)| *theirs == expected) {
        return (*words).to_owned();
    }
    for (begin, words) in EXPECTED_KINDS {
        let Some(rest) = expected.strip_prefix(begin) else {
            continue;
        };
        // "struct Range with 2 elements"; "a tuple of size 2".
        let size = rest
            .split_whitespace()
            .find(|word| word.parse::<u32>().is_ok());
        return match (*words, size) {
            ("an array of ", Some(size)) => format!("an array of {size} items"),
            ("an array of ", None) => "an array".to_owned(),
            (words, _) => words.to_owned(),
        };
    }
    expected.to_owned()
}

fn found_words(found: &str) -> String {
    for (theirs, words) in FOUND {
        if let Some(rest) = found.strip_prefix(theirs)
            && (theirs.ends_with(' ') || rest.is_empty())
        {
            return format!("{words}{rest}");
        }
    }
    found.to_owned()
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU16;

    use serde::Deserialize;
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;

    fn error_of<T: DeserializeOwned>(value: Value) -> String {
        json_words(
            &serde_json::from_value::<T>(value)
                .err()
                .unwrap()
                .to_string(),
        )
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only its errors matter")]
    struct Pair(u8, u8);

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only its errors matter")]
    struct Named {
        port: u16,
    }

    #[derive(Deserialize)]
    enum Kind {
        One,
    }

    #[derive(Deserialize)]
    #[serde(untagged)]
    #[expect(dead_code, reason = "only its errors matter")]
    enum Either {
        Number(u8),
        Flag(bool),
    }

    #[test]
    fn each_message_is_in_the_words_of_json() {
        for (said, expected) in [
            (
                error_of::<u64>(json!(-1)),
                "expected a whole number of at least 0, not integer `-1`",
            ),
            (
                error_of::<u16>(json!(70000)),
                "expected a whole number from 0 to 65535, not integer `70000`",
            ),
            (
                error_of::<NonZeroU16>(json!(0)),
                "expected a whole number from 1 to 65535, not integer `0`",
            ),
            (
                error_of::<f64>(json!("x")),
                "expected a number, not string \"x\"",
            ),
            (
                error_of::<bool>(json!(null)),
                "expected a boolean, not null",
            ),
            (
                error_of::<String>(json!({})),
                "expected a string, not an object",
            ),
            (
                error_of::<Vec<u8>>(json!(1.5)),
                "expected an array, not number `1.5`",
            ),
            (
                error_of::<serde_json::Map<String, Value>>(json!([])),
                "expected an object, not an array",
            ),
        ] {
            assert_eq!(said, expected);
        }
    }

    #[test]
    fn what_a_type_is_called_is_never_said() {
        for (said, expected) in [
            (
                error_of::<Named>(json!("x")),
                "expected an object, not string \"x\"",
            ),
            (
                error_of::<Pair>(json!(true)),
                "expected an array, not boolean `true`",
            ),
            (
                error_of::<(u8, u8)>(json!([1])),
                "expected an array of 2 items, not 1 items",
            ),
            (
                error_of::<Kind>(json!("Two")),
                "unknown value `Two`, expected `One`",
            ),
            (
                error_of::<Kind>(json!(5)),
                "expected a string, not integer `5`",
            ),
            (
                error_of::<char>(json!("ab")),
                "expected a string of one character, not string \"ab\"",
            ),
            (
                error_of::<Either>(json!("x")),
                "the value has none of the forms that are allowed here",
            ),
            (error_of::<Named>(json!({})), "missing field `port`"),
        ] {
            assert_eq!(said, expected);
        }
    }

    #[test]
    fn what_a_client_wrote_is_not_taken_for_the_message() {
        let said = error_of::<u64>(json!("map, expected u64"));
        assert_eq!(
            said,
            "expected a whole number of at least 0, not string \"map, expected u64\""
        );
        assert_eq!(
            json_words("must be 1 to 40, not 50"),
            "must be 1 to 40, not 50"
        );
    }
}
