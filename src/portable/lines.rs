//! Reads lines of a limited length from a stream of bytes.

use std::io;

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

/// A reader of lines.
pub struct LineReader<R> {
    input: BufReader<R>,
    longest: usize,
}

/// A line exceeded the limit and was discarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineTooLong;

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Reads lines of at most `longest` bytes.
    pub fn new(input: BufReader<R>, longest: usize) -> Self {
        Self { input, longest }
    }

    /// Returns the next line, without its line feed. A line that is too long is discarded. `None` at the end.
    pub async fn next(&mut self) -> io::Result<Option<Result<Vec<u8>, LineTooLong>>> {
        let mut line = Vec::new();
        let mut length = 0_usize;
        loop {
            let chunk = self.input.fill_buf().await?;
            let whole = chunk.iter().position(|byte| *byte == b'\n');
            let (part, _) = chunk.split_at(whole.unwrap_or(chunk.len()));
            let (used, at_end) = (part.len() + usize::from(whole.is_some()), chunk.is_empty());
            length = length.saturating_add(part.len());
            if length <= self.longest {
                line.extend_from_slice(part);
            } else {
                line = Vec::new();
            }
            self.input.consume(used);
            if at_end && length == 0 {
                return Ok(None);
            }
            if at_end || whole.is_some() {
                let fits = length <= self.longest;
                return Ok(Some(fits.then_some(line).ok_or(LineTooLong)));
            }
        }
    }
}
