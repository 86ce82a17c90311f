//! JSON pointers (RFC 6901): each prints as it was parsed, and finds what another implementation finds.

use serde_json::Value;

use super::input::{parts, text};
use gatewren_store::state::Pointer;

/// First part: a pointer; second part: a document.
pub fn print_and_find_themselves(data: &[u8]) {
    let [pointer, document] = parts(data);
    let Some(given) = text(pointer) else { return };
    from_a_path(given);
    let Ok(pointer) = Pointer::parse(given) else {
        assert!(!is_pointer(given), "{given:?} is a pointer");
        return;
    };
    assert!(is_pointer(given), "{given:?} is not a pointer");
    assert_eq!(pointer.to_string(), given);
    let escaped = given
        .bytes()
        .fold(String::new(), |path, b| format!("{path}%{b:02x}"));
    assert_eq!(Pointer::from_uri_path(&escaped).as_ref(), Ok(&pointer));
    stands_below_what_is_above(&pointer);
    if let Ok(document) = serde_json::from_slice::<Value>(document) {
        assert_eq!(pointer.get(&document), document.pointer(given), "{given:?}");
    }
}

/// RFC 6901 section 3, and our two limits.
fn is_pointer(text: &str) -> bool {
    let escapes = text
        .split('~')
        .skip(1)
        .all(|rest| rest.starts_with(['0', '1']));
    let begins = text.is_empty() || text.starts_with('/');
    let bounded = text.len() <= 4096 && text.matches('/').count() <= 100;
    begins && escapes && bounded
}

/// Asserts that percent-decoding follows RFC 3986 section 2.1, and comes first.
fn from_a_path(path: &str) {
    let bytes = path.as_bytes();
    let mut decoded = Vec::new();
    let mut at = 0;
    let mut sound = true;
    while let Some(byte) = bytes.get(at) {
        let digit = |offset: usize| {
            let digit = bytes.get(at + offset).copied().map(char::from);
            digit.and_then(|digit| digit.to_digit(16))
        };
        match (byte, digit(1), digit(2)) {
            (b'%', Some(high), Some(low)) => {
                decoded.extend(u8::try_from(high * 16 + low));
                at += 3;
            }
            (b'%', ..) => {
                sound = false;
                break;
            }
            _ => {
                decoded.push(*byte);
                at += 1;
            }
        }
    }
    let wanted = String::from_utf8(decoded).ok().filter(|_| sound);
    let wanted = wanted.and_then(|text| Pointer::parse(&text).ok());
    assert_eq!(Pointer::from_uri_path(path).ok(), wanted, "{path:?}");
}

fn stands_below_what_is_above(pointer: &Pointer) {
    assert!(Pointer::root().covers(pointer) && pointer.covers(pointer));
    assert_eq!(Pointer::root().way_to(pointer).as_ref(), Some(pointer));
    assert_eq!(pointer.way_to(pointer), Some(Pointer::root()));
    let Some((above, last)) = pointer.split_last() else {
        assert_eq!(*pointer, Pointer::root());
        return;
    };
    assert_eq!(above.child(last), *pointer);
    assert!(above.covers(pointer) && !pointer.covers(&above));
    let beside = above.child(format!("{last}x"));
    assert!(!pointer.covers(&beside) && !beside.covers(pointer));
}
