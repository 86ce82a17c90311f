//! A part of a job's output, cut at character boundaries.

use schemars::JsonSchema;
use serde::Serialize;

use crate::helper_client::{Capture, JobOutputHeader};

/// The maximum bytes of a job's output in one answer.
pub const MOST_BYTES: u32 = 40 * 1024;

/// The maximum size of a part with the line before it.
pub const PIECE: Capture = Capture {
    head: MOST_BYTES as usize + 4096,
    tail: 0,
};

/// A part of a job's output: stdout and stderr, in the order of arrival.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct JobOutput {
    /// The byte offset of this part in the whole output.
    pub offset: u64,
    /// The byte offset of the next part.
    pub next_offset: u64,
    /// The number of bytes that the job has printed so far.
    pub output_bytes: u64,
    /// Whether there is more output after this part now.
    pub truncated: bool,
    /// Whether the job has ended; then no output is added.
    pub ended: bool,
    /// Bytes between the requested offset and `offset`, which are no longer kept.
    #[serde(skip_serializing_if = "super::job_status::is_zero")]
    pub skipped_bytes: u64,
    /// The text; bytes that are not UTF-8 are replaced.
    pub output: String,
}

/// Builds a part from the header line and the bytes after it, without characters that are cut at
/// either end.
pub fn parse_piece(asked: u64, from_any: bool, answer: &[u8]) -> Option<JobOutput> {
    let end = answer.iter().position(|byte| *byte == b'\n')?;
    let (line, bytes) = (answer.get(..end)?, answer.get(end + 1..)?);
    let header: JobOutputHeader = serde_json::from_slice(line).ok()?;
    let last = header.offset + bytes.len() as u64 == header.output_bytes && header.ended;
    let begin = if from_any {
        count_continuation(bytes)
    } else {
        0
    };
    let bytes = bytes.get(begin..)?;
    let whole = if last { bytes } else { whole_chars(bytes) };
    let offset = header.offset + begin as u64;
    let next_offset = offset + whole.len() as u64;
    Some(JobOutput {
        offset,
        next_offset,
        output_bytes: header.output_bytes,
        truncated: next_offset < header.output_bytes,
        ended: header.ended,
        skipped_bytes: if from_any {
            0
        } else {
            offset.saturating_sub(asked)
        },
        output: String::from_utf8_lossy(whole).into_owned(),
    })
}

/// Returns the number of leading bytes that continue an earlier character.
fn count_continuation(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .take(3)
        .take_while(|b| **b & 0xc0 == 0x80)
        .count()
}

/// Removes a character that is cut at the end; the next part has it whole.
fn whole_chars(bytes: &[u8]) -> &[u8] {
    let tail = bytes.len().saturating_sub(3);
    let last = (tail..bytes.len())
        .rev()
        .find(|at| bytes.get(*at).is_some_and(|b| *b >= 0xc0));
    let cut = last.filter(|at| {
        let rest = bytes.get(*at..).unwrap_or_default();
        std::str::from_utf8(rest).is_err_and(|e| e.valid_up_to() == 0 && e.error_len().is_none())
    });
    // A part must never be empty, so that reading makes progress.
    cut.filter(|at| *at > 0)
        .and_then(|at| bytes.get(..at))
        .unwrap_or(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(
        asked: u64,
        from_any: bool,
        offset: u64,
        text: &[u8],
        (all, ended): (u64, bool),
    ) -> JobOutput {
        let line = format!("{{\"offset\":{offset},\"output_bytes\":{all},\"ended\":{ended}}}\n");
        parse_piece(asked, from_any, &[line.as_bytes(), text].concat()).unwrap()
    }

    #[test]
    fn a_piece_goes_on_where_the_one_before_it_ended_whatever_is_cut() {
        let text = "aä€𝄞\n".repeat(50);
        let all = text.len();
        for most in 4..30 {
            let (mut at, mut read) = (0, String::new());
            while at < all {
                let bytes = &text.as_bytes()[at..all.min(at + most)];
                let piece = cut(at as u64, false, at as u64, bytes, (all as u64, true));
                assert!(piece.next_offset > piece.offset);
                at = usize::try_from(piece.next_offset).unwrap();
                assert_eq!(piece.truncated, at < all);
                read += &piece.output;
            }
            assert_eq!(read, text, "{most}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_passed_and_counted_as_they_came() {
        let piece = cut(0, false, 0, b"a\xff\xfe\xf0", (100, false));
        assert_eq!(
            (piece.next_offset, piece.output.as_str()),
            (3, "a\u{fffd}\u{fffd}")
        );
        let piece = cut(3, false, 3, b"\xf0", (4, false));
        assert_eq!(piece.next_offset, 4, "it goes on all the same");
        let piece = cut(
            0,
            true,
            10,
            "\u{20ac}x".as_bytes().get(1..).unwrap(),
            (13, true),
        );
        assert_eq!((piece.offset, piece.output.as_str()), (12, "x"));
        assert_eq!(piece.skipped_bytes, 0);
        let piece = cut(5, false, 9, b"later", (14, true));
        assert_eq!(piece.skipped_bytes, 4);
    }
}
