//! The size of a value as JSON text, without writing it.

use std::io::{self, Write};

use serde::Serialize;

/// Returns the size of `value` as compact JSON text (UTF-8, no spaces), in bytes.
pub fn text_len<T: Serialize + ?Sized>(value: &T) -> i64 {
    let mut bytes = Count(0);
    // A JSON value can always be serialized, and counting does not fail.
    let _ = serde_json::to_writer(&mut bytes, value);
    bytes.0
}

/// Returns the bytes that `value` adds as one of the `entries` of a list or an object, itself included: with its
/// comma, unless it is the only entry.
pub fn entry_len<T: Serialize + ?Sized>(value: &T, entries: usize) -> i64 {
    text_len(value) + i64::from(entries > 1)
}

/// Returns the bytes that a key adds to its entry, with the colon.
pub fn key_len(key: &str) -> i64 {
    text_len(key) + 1
}

/// Counts the bytes that are written.
struct Count(i64);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_counts_what_would_be_written() {
        for value in [
            json!({"a\n": [1, -2.5, "ü\u{1}"], "b": null, "": {}}),
            json!([]),
            json!("\"\\"),
            json!(1e300),
        ] {
            let written = value.to_string().len();
            assert_eq!(text_len(&value), i64::try_from(written).unwrap());
        }
        assert_eq!(key_len("a\"b"), 7);
        assert_eq!(entry_len(&json!(12), 1), 2);
        assert_eq!(entry_len(&json!(12), 2), 3);
    }
}
