//! Filters lines out of a program's output before they reach the caller.

use std::fmt;

/// The longest line that passes, in bytes. A longer one is dropped. A journal message normally has at most 64 kB, and
/// each non-text byte is written with up to four.
const LINE_BYTES: usize = 512 * 1024;

/// Decides whether a line passes.
type LinePredicate = dyn Fn(&[u8]) -> bool + Send;

/// Passes the complete lines that the predicate accepts. A last line without a line feed is dropped.
pub struct LineFilter {
    shows: Box<LinePredicate>,
    unfinished: Vec<u8>,
    /// Whether the unfinished line is too long and will be dropped.
    too_long: bool,
}

impl LineFilter {
    /// Creates a filter; `shows` gets each line without its line feed.
    pub fn new(shows: impl Fn(&[u8]) -> bool + Send + 'static) -> Self {
        Self {
            shows: Box::new(shows),
            unfinished: Vec::new(),
            too_long: false,
        }
    }

    /// Returns the lines that are complete now and pass.
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

impl fmt::Debug for LineFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sieve").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::line_filter::*;

    #[test]
    fn whole_lines_that_fit_come_through() {
        let mut filter = LineFilter::new(|line| !line.starts_with(b"x"));
        assert_eq!(filter.pass(b"a\nx\n\nb"), b"a\n\n");
        assert_eq!(filter.pass(b""), b"");
        assert_eq!(filter.pass(b"c\nx"), b"bc\n");
        assert_eq!(filter.pass(b"y\nd\n"), b"d\n");
        for _ in 0..3 {
            assert_eq!(filter.pass(&vec![b'a'; LINE_BYTES / 2]), b"");
        }
        assert_eq!(filter.pass(b"end\ne\n"), b"e\n");
    }
}
