//! Limits of answers for long or untrusted content: of a text its beginning and its end, of a list a page.
//!
//! How a tool uses it:
//! - A text that is too long to be shown whole is an [`Excerpt`], as a field of the answer or flattened into it:
//!   `Excerpt::page(window, offset, total_bytes)` continues at the `next_offset` of an earlier answer, in tools
//!   that take an `offset`. Errors need nothing: the beginning and the end of long ones are kept, wherever they
//!   come from.
//! - A list is `Page::of(items, offset, limit)`; its `items`, `truncated` and `next_offset` go into the answer.
//! - Bytes that are not text (see `is_text`) are `Answer::with_resource(ResourceContents::of_bytes(..))`: base64.
//! - If the whole can be read elsewhere, `Answer::with_link` links to it.
//!
//! Answers that are data need no handling of control characters: their text form never contains raw ones.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;

use gatewren_base::sys::{is_hostile, neutralise};

/// The limit of a text in an answer: 40 kB, split into a beginning and an end of these sizes.
const HEAD: usize = 24 << 10;
const TAIL: usize = 16 << 10;

/// The limit of an error's text.
const ERROR_HEAD: usize = 1200;
const ERROR_TAIL: usize = 600;

/// The maximum size of the items of one page as JSON; the page ends early at this size.
const PAGE_BYTES: usize = HEAD + TAIL;

/// Part of a text that may be long and untrusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Excerpt {
    /// The text. Invalid UTF-8 is replaced, and control characters are replaced by their names. If it is
    /// `truncated`, a line at the place of the gap states how many bytes are missing.
    pub text: String,
    /// The total size in bytes.
    pub total_bytes: u64,
    /// Whether bytes are missing.
    pub truncated: bool,
    /// The offset of the first missing byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<u64>,
}

impl Excerpt {
    /// The text of an error, or its beginning and its end: about a page is enough to show what is wrong.
    pub fn of_error(words: &str) -> Self {
        Self::of_bytes(words.as_bytes(), ERROR_HEAD, ERROR_TAIL)
    }

    /// The whole, or this much of its beginning and of its end.
    fn of_bytes(whole: &[u8], head: usize, tail: usize) -> Self {
        let total_bytes = whole.len() as u64;
        if let Some(text) = text_within(whole, head + tail) {
            return Self {
                text,
                total_bytes,
                truncated: false,
                next_offset: None,
            };
        }
        let (head, begun) = beginning(whole, head);
        let rest = whole.get(begun..).unwrap_or_default();
        let (tail, ended) = end(rest, tail);
        let missing = rest.len().saturating_sub(ended);
        Self {
            text: format!("{head}\n[... {missing} bytes left out ...]\n{tail}"),
            total_bytes,
            truncated: true,
            next_offset: Some(begun as u64),
        }
    }

    /// The text from an offset on, as far as it fits. `window` begins at the offset; it is everything that follows,
    /// or at least as much as an answer can hold.
    pub fn page(window: &[u8], offset: u64, total_bytes: u64) -> Self {
        let is_last = offset.saturating_add(window.len() as u64) >= total_bytes;
        let whole = if is_last { window } else { whole_chars(window) };
        let (text, used) = beginning(whole, HEAD + TAIL);
        let next = offset.saturating_add(used as u64);
        let truncated = next < total_bytes;
        Self {
            text,
            total_bytes,
            truncated,
            next_offset: truncated.then_some(next),
        }
    }

    /// The number of bytes of a source, from the offset on, that is enough for [`Excerpt::page`].
    pub const WINDOW: usize = HEAD + TAIL;
}

/// Whether bytes can be shown as text: UTF-8 without a zero byte, where the last character may be incomplete.
pub fn is_text(bytes: &[u8]) -> bool {
    !bytes.contains(&0) && std::str::from_utf8(whole_chars(bytes)).is_ok()
}

/// Some items of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The items, in the list's order.
    pub items: Vec<T>,
    /// Whether there are more items.
    pub truncated: bool,
    /// The `offset` of the next page.
    pub next_offset: Option<u64>,
}

impl<T: Serialize> Page<T> {
    /// The items from `offset` on: at most `limit`, and no more than fit into an answer, but at least one.
    pub fn of(list: impl IntoIterator<Item = T>, offset: u64, limit: u32) -> Self {
        let skipped = usize::try_from(offset).unwrap_or(usize::MAX);
        let list = list.into_iter().skip(skipped);
        let (mut items, mut bytes) = (Vec::new(), 0);
        let mut next_offset = None;
        for item in list {
            // An item that cannot be serialized fails where the answer is serialized.
            bytes += serde_json::to_vec(&item).map_or(0, |json| json.len());
            let full = items.len() >= limit as usize || bytes > PAGE_BYTES && !items.is_empty();
            if full {
                next_offset = Some(offset.saturating_add(items.len() as u64));
                break;
            }
            items.push(item);
        }
        Self {
            items,
            truncated: next_offset.is_some(),
            next_offset,
        }
    }
}

/// Escapes the characters in JSON strings that a terminal would interpret.
pub(super) fn visible(json: String) -> String {
    if is_visible(&json) {
        return json;
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if is_interpreted(c) {
            // All of them are below U+10000. Writing to a `String` cannot fail.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

/// Whether JSON from `serde_json` contains no characters that a terminal interprets or that hide others.
pub(super) fn is_visible(json: &str) -> bool {
    // serde_json has escaped the control characters below the space, so one ASCII control character is left.
    json.is_ascii() && !json.as_bytes().contains(&0x7f) || !json.contains(is_interpreted)
}

fn is_interpreted(c: char) -> bool {
    is_hostile(c) && c != '\r'
}

/// Returns bytes as text, if the text is not longer than this.
fn text_within(bytes: &[u8], most: usize) -> Option<String> {
    let few = bytes.len() <= most;
    let text = few.then(|| neutralise(&String::from_utf8_lossy(bytes)).into_owned());
    text.filter(|text| text.len() <= most)
}

/// Returns the beginning as text of at most this length, and the number of bytes that it covers.
fn beginning(bytes: &[u8], most: usize) -> (String, usize) {
    let mut part = bytes.get(..most).map_or(bytes, whole_chars);
    loop {
        let text = neutralise(&String::from_utf8_lossy(part)).into_owned();
        if text.len() <= most {
            return (text, part.len());
        }
        // The names of control characters are longer than the characters.
        part = whole_chars(part.get(..part.len() / 2).unwrap_or_default());
    }
}

/// The same for the end.
fn end(bytes: &[u8], most: usize) -> (String, usize) {
    let mut length = most.min(bytes.len());
    loop {
        let part = bytes.get(bytes.len() - length..).unwrap_or_default();
        let cut = part.iter().take(3).take_while(|b| **b & 0xc0 == 0x80);
        let cut = if length < bytes.len() { cut.count() } else { 0 };
        let part = part.get(cut..).unwrap_or_default();
        let text = neutralise(&String::from_utf8_lossy(part)).into_owned();
        if text.len() <= most {
            return (text, part.len());
        }
        length /= 2;
    }
}

/// Removes an incomplete character at the end.
fn whole_chars(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(e) if e.error_len().is_none() => bytes.get(..e.valid_up_to()).unwrap_or(bytes),
        Err(_) => {
            // Earlier invalid bytes hide whether the last character is incomplete; a character has at most four
            // bytes.
            let last = (1..=3).find(|n| {
                let at = bytes.len().checked_sub(*n).and_then(|at| bytes.get(at..));
                at.is_some_and(|end| {
                    std::str::from_utf8(end).is_err_and(|e| e.error_len().is_none())
                })
            });
            let kept = bytes.len() - last.unwrap_or(0);
            bytes.get(..kept).unwrap_or(bytes)
        }
        Ok(_) => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_whole() {
        let excerpt = Excerpt::of_error("a\u{1b}[31mä\n");
        assert_eq!(excerpt.text, "a^[[31mä\n");
        assert_eq!((excerpt.truncated, excerpt.next_offset), (false, None));
        assert_eq!(excerpt.total_bytes, 9);
    }

    #[test]
    fn the_middle_of_what_is_long_goes_and_is_counted() {
        let whole = "ä".repeat(40_000);
        let excerpt = Excerpt::of_bytes(whole.as_bytes(), HEAD, TAIL);
        assert!(excerpt.truncated && !excerpt.text.contains('\u{fffd}'));
        assert_eq!(excerpt.next_offset, Some(24 << 10));
        assert!(excerpt.text.len() <= HEAD + TAIL + 40);
        let left_out = 80_000 - HEAD - TAIL;
        assert!(
            excerpt
                .text
                .contains(&format!("[... {left_out} bytes left out ...]"))
        );
    }

    #[test]
    fn control_characters_do_not_make_it_longer_than_it_may_be() {
        for byte in [0u8, 0x1b, 0x9b, 0xff] {
            let whole = vec![byte; 1 << 20];
            let excerpt = Excerpt::of_bytes(&whole, HEAD, TAIL);
            assert!(excerpt.text.len() <= HEAD + TAIL + 40, "{byte}");
            assert!(excerpt.truncated && !excerpt.text.contains(['\0', '\u{1b}', '\u{9b}']));
        }
        let few = vec![0u8; 30 << 10];
        assert!(Excerpt::of_bytes(&few, HEAD, TAIL).truncated);
    }

    #[test]
    fn pages_follow_each_other_until_all_was_said() {
        let whole: Vec<u8> = "aö\u{1b}\u{fffd}xyz".repeat(20_000).into_bytes();
        let whole = [whole.as_slice(), b"\xff\xfe\0end"].concat();
        let (mut offset, mut text, mut pages) = (0, String::new(), 0);
        loop {
            let window = &whole[offset..(offset + Excerpt::WINDOW).min(whole.len())];
            let page = Excerpt::page(window, offset as u64, whole.len() as u64);
            assert!(page.text.len() <= HEAD + TAIL);
            text.push_str(&page.text);
            pages += 1;
            match page.next_offset {
                Some(next) => offset = usize::try_from(next).unwrap(),
                None => break,
            }
        }
        assert_eq!(text, neutralise(&String::from_utf8_lossy(&whole)));
        assert!((5..20).contains(&pages), "{pages}");
    }

    #[test]
    fn a_list_ends_at_its_limit_or_when_the_answer_is_full() {
        let page = Page::of(0..10, 3, 4);
        assert_eq!((page.items, page.next_offset), (vec![3, 4, 5, 6], Some(7)));
        let page = Page::of(0..10, 7, 4);
        assert_eq!((page.items, page.truncated), (vec![7, 8, 9], false));
        assert!(Page::of(0..10, u64::MAX, 4).items.is_empty());
        let long = "x".repeat(PAGE_BYTES);
        let page = Page::of([&long, &long], 0, 9);
        assert_eq!((page.items.len(), page.next_offset), (1, Some(1)));
    }

    #[test]
    fn bytes_are_text_when_they_read_as_such() {
        assert!(is_text(b"") && is_text("ä\u{1b}".as_bytes()) && is_text(&"aä".as_bytes()[..2]));
        assert!(!is_text(b"a\0") && !is_text(b"\xff\xd8\xff") && !is_text(b"\xc3(abc"));
    }

    #[test]
    fn visible_json_means_the_same() {
        let value = serde_json::json!({ "a\u{202e}": "\u{7f}\u{9b}\u{1b}\r\n\t\0ä" });
        let text = visible(serde_json::to_string_pretty(&value).unwrap());
        assert!(!text.contains(|c: char| is_hostile(c)), "{text}");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&text).unwrap(),
            value
        );
    }
}
