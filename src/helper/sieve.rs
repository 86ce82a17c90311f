//! Lines that are left out of what a program prints, before anybody hears of them.

use std::fmt;

/// The longest line that comes through, in bytes; a longer one is left out. A message of a journal may have 64 kB as a
/// rule, and each byte of one that is no text is written with up to four.
const LINE_BYTES: usize = 512 * 1024;

/// Whether a line comes through.
type Shows = dyn Fn(&[u8]) -> bool + Send;

/// Lets through whole lines that are for the caller. The end of what has no line feed behind it is left out.
pub struct Sieve {
    shows: Box<Shows>,
    unfinished: Vec<u8>,
    /// Whether the unfinished line is one that is left out.
    too_long: bool,
}

impl Sieve {
    /// For lines that fit, each without its line feed.
    pub fn new(shows: impl Fn(&[u8]) -> bool + Send + 'static) -> Self {
        Self {
            shows: Box::new(shows),
            unfinished: Vec::new(),
            too_long: false,
        }
    }

    /// What of the lines that are whole now comes through.
    pub fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut through = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, is_whole) = match piece.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (piece, false),
            };
            self.too_long |= self.unfinished.len() + text.len() > LINE_BYTES;
            if !self.too_long {
                self.unfinished.extend(text);
            }
            if is_whole {
                let line = std::mem::take(&mut self.unfinished);
                if !std::mem::take(&mut self.too_long) && (self.shows)(&line) {
                    through.extend(line);
                    through.push(b'\n');
                }
            }
        }
        through
    }
}

impl fmt::Debug for Sieve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sieve").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_lines_that_fit_come_through() {
        let mut sieve = Sieve::new(|line| !line.starts_with(b"x"));
        assert_eq!(sieve.pass(b"a\nx\n\nb"), b"a\n\n");
        assert_eq!(sieve.pass(b""), b"");
        assert_eq!(sieve.pass(b"c\nx"), b"bc\n");
        assert_eq!(sieve.pass(b"y\nd\n"), b"d\n");
        for _ in 0..3 {
            assert_eq!(sieve.pass(&vec![b'a'; LINE_BYTES / 2]), b"");
        }
        assert_eq!(sieve.pass(b"end\ne\n"), b"e\n");
    }
}
