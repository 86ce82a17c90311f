//! One output stream of a command in bounded memory: its first and its last bytes.

use std::borrow::Cow;
use std::collections::VecDeque;

/// How many bytes of an output are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capture {
    /// Bytes kept from the beginning.
    pub head: usize,
    /// Bytes kept from the end. Bytes in between are counted and discarded.
    pub tail: usize,
}

/// The captured output: `head`, a gap if the output was longer than both limits, and `tail`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedOutput {
    /// Its first bytes.
    pub head: Vec<u8>,
    /// Its last bytes; they never overlap `head`.
    pub tail: Vec<u8>,
    /// The total number of bytes in the output.
    pub total_bytes: u64,
}

impl CapturedOutput {
    /// Whether bytes are missing between `head` and `tail`.
    pub fn truncated(&self) -> bool {
        self.total_bytes > (self.head.len() + self.tail.len()) as u64
    }

    /// Reduces the capture to smaller limits, removing bytes from the middle.
    pub fn shrink(&mut self, to: Capture) {
        if self.head.len() > to.head {
            let cut = self.head.split_off(to.head);
            if !self.truncated_before(cut.len()) {
                self.tail.splice(..0, cut);
            }
        }
        let excess = self.tail.len().saturating_sub(to.tail);
        self.tail.drain(..excess);
    }

    /// Whether there was a gap before `cut` bytes were removed from the head.
    fn truncated_before(&self, cut: usize) -> bool {
        self.total_bytes > (self.head.len() + cut + self.tail.len()) as u64
    }

    /// Returns the output as text. Invalid UTF-8 is replaced; a gap is shown with its size.
    pub fn text_lossy(&self) -> String {
        if !self.truncated() {
            let whole = [self.head.as_slice(), self.tail.as_slice()].concat();
            return String::from_utf8_lossy(&whole).into_owned();
        }
        let (head, tail) = (
            whole_chars_at_end(&self.head),
            whole_chars_at_start(&self.tail),
        );
        let missing = self
            .total_bytes
            .saturating_sub((head.len() + tail.len()) as u64);
        format!(
            "{}\n[... {missing} bytes left out ...]\n{}",
            lossy(head),
            lossy(tail)
        )
    }
}

/// Collects one output; its memory never exceeds the limits of the capture.
#[derive(Debug)]
pub struct OutputCollector {
    capture: Capture,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

impl OutputCollector {
    /// Returns an empty collector.
    pub fn new(capture: Capture) -> Self {
        Self {
            capture,
            head: Vec::new(),
            tail: VecDeque::new(),
            total: 0,
        }
    }

    /// Appends the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = self.capture.head.saturating_sub(self.head.len());
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(first);
        let unneeded = rest.len().saturating_sub(self.capture.tail);
        let rest = rest.get(unneeded..).unwrap_or_default();
        let overflow = (self.tail.len() + rest.len()).saturating_sub(self.capture.tail);
        self.tail.drain(..overflow.min(self.tail.len()));
        self.tail.extend(rest);
    }

    /// Returns the captured output.
    pub fn finish(self) -> CapturedOutput {
        CapturedOutput {
            head: self.head,
            tail: self.tail.into(),
            total_bytes: self.total,
        }
    }
}

fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// Removes a character that was cut at the end, so that the cut itself adds no replacement
/// character.
fn whole_chars_at_end(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(e) if e.error_len().is_none() => bytes.get(..e.valid_up_to()).unwrap_or(bytes),
        _ => bytes,
    }
}

fn whole_chars_at_start(bytes: &[u8]) -> &[u8] {
    let continuation = bytes.iter().take(3).take_while(|b| **b & 0xc0 == 0x80);
    bytes.get(continuation.count()..).unwrap_or(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(pieces: &[&[u8]], head: usize, tail: usize) -> CapturedOutput {
        let mut collector = OutputCollector::new(Capture { head, tail });
        for piece in pieces {
            collector.push(piece);
        }
        collector.finish()
    }

    #[test]
    fn what_fits_is_whole() {
        let got = captured(&[b"ab", b"cd", b"ef"], 4, 2);
        assert!(!got.truncated());
        assert_eq!(got.text_lossy(), "abcdef");
    }

    #[test]
    fn the_middle_goes_and_is_counted() {
        let got = captured(&[b"abc", b"defghij", b"k", b"lm"], 4, 3);
        assert_eq!(
            (got.head.as_slice(), got.tail.as_slice()),
            (&b"abcd"[..], &b"klm"[..])
        );
        assert!(got.truncated());
        assert_eq!(got.total_bytes, 13);
        assert_eq!(got.text_lossy(), "abcd\n[... 6 bytes left out ...]\nklm");
    }

    #[test]
    fn a_gigabyte_is_held_in_the_capture() {
        let piece = vec![b'x'; 64 * 1024];
        let mut collector = OutputCollector::new(Capture {
            head: 10,
            tail: 100,
        });
        for _ in 0..16 * 1024 {
            collector.push(&piece);
        }
        assert!(collector.tail.capacity() < 1000);
        assert_eq!(collector.finish().total_bytes, 1 << 30);
    }

    #[test]
    fn a_cut_through_a_character_leaves_no_replacement_mark() {
        let got = captured(&["aä--------öb".as_bytes()], 2, 2);
        assert_eq!(got.text_lossy(), "a\n[... 12 bytes left out ...]\nb");
        let broken = captured(&[b"a\xffb"], 10, 0);
        assert_eq!(broken.text_lossy(), "a\u{fffd}b");
    }

    #[test]
    fn shrinking_takes_the_middle_of_the_whole() {
        let shrunk = |pieces, head, tail| {
            let mut got = captured(pieces, 4, 4);
            got.shrink(Capture { head, tail });
            (
                String::from_utf8(got.head).unwrap(),
                String::from_utf8(got.tail).unwrap(),
            )
        };
        let pair = |head: &str, tail: &str| (head.to_owned(), tail.to_owned());
        assert_eq!(shrunk(&[b"abcdef"], 2, 3), pair("ab", "def"));
        assert_eq!(shrunk(&[b"abcdef"], 2, 4), pair("ab", "cdef"));
        assert_eq!(shrunk(&[b"abcdefghijkl"], 2, 3), pair("ab", "jkl"));
        assert_eq!(shrunk(&[b"abcdefghijkl"], 2, 9), pair("ab", "ijkl"));
        assert_eq!(shrunk(&[b"ab"], 2, 0), pair("ab", ""));
    }

    #[test]
    fn nothing_kept_is_nothing_lost_when_nothing_came() {
        assert!(!captured(&[], 0, 0).truncated());
        assert!(captured(&[b"a"], 0, 0).truncated());
    }
}
