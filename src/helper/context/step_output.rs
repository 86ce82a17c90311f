//! The output of a program of the helper's own, kept for the helper to read.

use gatewren_wire::operations::Stream;

/// How much of each stream of a captured output is kept, in bytes: its end.
const CAPTURE_BYTES: usize = 256 * 1024;

/// The end of what programs printed while their output was captured.
#[derive(Debug, Default)]
pub struct StepOutput {
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
}

impl StepOutput {
    fn put(&mut self, which: Stream, bytes: &[u8]) {
        let kept = match which {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        kept.extend(bytes);
        let excess = kept.len().saturating_sub(CAPTURE_BYTES);
        kept.drain(..excess);
    }
}

/// Keeps captured output. All that programs print reaches the caller as stderr then: only the helper reads its stdout.
pub fn captured(capture: &mut Option<StepOutput>, which: Stream, bytes: &[u8]) -> Stream {
    match capture {
        None => which,
        Some(output) => {
            output.put(which, bytes);
            Stream::Stderr
        }
    }
}
