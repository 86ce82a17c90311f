//! Separates the bytes of a log into lines, each with its stream and time.
//!
//! Without a terminal the bytes are frames: a byte for the stream, three zero bytes, the length as four bytes, and
//! the text. Each frame, and each line of a terminal, begins with its time and a space. Docker sends a line of more
//! than 16 KiB in several frames, of which only the last one ends with a line feed.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::error::{EngineError, engine_words};
use super::log_request::EngineLogStream;

/// The most bytes of a line; the rest of a longer one is left out.
///
/// It is at most the 16 KiB after which Docker begins a new part: in the log of a terminal nothing shows where the
/// next part begins.
pub const MAX_LOG_LINE_BYTES: usize = 16 * 1024;
/// The most bytes of a line's time; a longer word at its start is text.
const MAX_TIME_BYTES: usize = 40;
/// The most bytes of a message of the engine in a log.
const MAX_FAULT_BYTES: usize = 1024;

const HEADER_BYTES: usize = 8;

/// A line as it comes from the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawLogLine {
    /// Where the container wrote it.
    pub stream: EngineLogStream,
    /// Nanoseconds since 1970; `None` if the line does not begin with a time.
    pub time_ns: Option<u64>,
    /// The text without its time and its line feed.
    pub text: Vec<u8>,
    /// Whether the end of the text was left out.
    pub is_cut: bool,
}

/// Separates lines, however the bytes arrive.
pub(super) struct LogLines {
    source: Source,
    /// Lines that are whole.
    ready: Vec<RawLogLine>,
}

enum Source {
    Terminal(OpenLine),
    Frames(Frames),
}

struct Frames {
    stdout: OpenLine,
    stderr: OpenLine,
    /// An error of the engine while it reads the log.
    fault: Vec<u8>,
    header: Vec<u8>,
    /// What the rest of the frame is.
    part: FramePart,
    remaining: usize,
    count: usize,
}

#[derive(Clone, Copy)]
enum FramePart {
    Stdout,
    Stderr,
    Fault,
}

/// The line of one stream whose end has not arrived.
struct OpenLine {
    stream: EngineLogStream,
    /// What has arrived of the time; `None` after it.
    prefix: Option<Vec<u8>>,
    time_ns: Option<u64>,
    text: Vec<u8>,
    is_cut: bool,
    is_begun: bool,
}

impl LogLines {
    pub(super) fn new(has_tty: bool) -> Self {
        let source = if has_tty {
            Source::Terminal(OpenLine::new(EngineLogStream::Terminal))
        } else {
            Source::Frames(Frames {
                stdout: OpenLine::new(EngineLogStream::Stdout),
                stderr: OpenLine::new(EngineLogStream::Stderr),
                fault: Vec::new(),
                header: Vec::with_capacity(HEADER_BYTES),
                part: FramePart::Stdout,
                remaining: 0,
                count: 0,
            })
        };
        Self {
            source,
            ready: Vec::new(),
        }
    }

    /// Takes the next bytes; returns the lines that they complete.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Vec<RawLogLine>, EngineError> {
        match &mut self.source {
            Source::Terminal(line) => line.push(bytes, &mut self.ready),
            Source::Frames(frames) => frames.push(bytes, &mut self.ready)?,
        }
        Ok(std::mem::take(&mut self.ready))
    }

    /// The number of frames that have begun. A terminal has none.
    pub(super) fn frames(&self) -> usize {
        match &self.source {
            Source::Terminal(_) => 0,
            Source::Frames(frames) => frames.count,
        }
    }

    /// Returns the lines without a line feed at the end of the log.
    pub(super) fn finish(mut self) -> Result<Vec<RawLogLine>, EngineError> {
        match self.source {
            Source::Terminal(mut line) => line.finish(&mut self.ready),
            Source::Frames(mut frames) => {
                if !frames.fault.is_empty() {
                    let fault = engine_words(&String::from_utf8_lossy(&frames.fault));
                    return Err(EngineError::Refused(format!(
                        "the engine cannot read the log: {fault}"
                    )));
                }
                if frames.remaining > 0 || !frames.header.is_empty() {
                    return Err(EngineError::Unavailable(
                        "the engine ended its answer within a line of the log".to_owned(),
                    ));
                }
                frames.stdout.finish(&mut self.ready);
                frames.stderr.finish(&mut self.ready);
            }
        }
        Ok(self.ready)
    }
}

impl Frames {
    fn push(&mut self, mut bytes: &[u8], ready: &mut Vec<RawLogLine>) -> Result<(), EngineError> {
        while !bytes.is_empty() {
            if self.remaining == 0 {
                let missing = HEADER_BYTES.saturating_sub(self.header.len());
                let (head, rest) = bytes.split_at(missing.min(bytes.len()));
                self.header.extend_from_slice(head);
                bytes = rest;
                if self.header.len() == HEADER_BYTES {
                    self.begin()?;
                }
                continue;
            }
            let (text, rest) = bytes.split_at(self.remaining.min(bytes.len()));
            self.remaining -= text.len();
            bytes = rest;
            match self.part {
                FramePart::Stdout => self.stdout.push(text, ready),
                FramePart::Stderr => self.stderr.push(text, ready),
                FramePart::Fault => {
                    let room = MAX_FAULT_BYTES.saturating_sub(self.fault.len());
                    self.fault.extend(text.iter().take(room));
                }
            }
        }
        Ok(())
    }

    fn begin(&mut self) -> Result<(), EngineError> {
        let header = std::mem::take(&mut self.header);
        let [stream, 0, 0, 0, length @ ..] = header.as_slice() else {
            return Err(not_frames());
        };
        let length: [u8; 4] = length.try_into().map_err(|_| not_frames())?;
        self.remaining = u32::from_be_bytes(length) as usize;
        self.count += 1;
        self.part = match stream {
            0 | 1 => FramePart::Stdout,
            2 => FramePart::Stderr,
            3 => FramePart::Fault,
            _ => return Err(not_frames()),
        };
        match self.part {
            FramePart::Stdout => self.stdout.begin_part(),
            FramePart::Stderr => self.stderr.begin_part(),
            FramePart::Fault => {}
        }
        Ok(())
    }
}

fn not_frames() -> EngineError {
    EngineError::Unreadable(
        "the log does not consist of frames, as the log of a container without a terminal does"
            .to_owned(),
    )
}

impl OpenLine {
    fn new(stream: EngineLogStream) -> Self {
        Self {
            stream,
            prefix: Some(Vec::new()),
            time_ns: None,
            text: Vec::new(),
            is_cut: false,
            is_begun: false,
        }
    }

    /// A frame begins: with its time, also if it continues a line.
    fn begin_part(&mut self) {
        self.end_prefix(b"");
        self.prefix = Some(Vec::new());
    }

    fn push(&mut self, mut bytes: &[u8], ready: &mut Vec<RawLogLine>) {
        while !bytes.is_empty() {
            let Some(prefix) = &mut self.prefix else {
                let end = bytes.iter().position(|b| *b == b'\n');
                let (text, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
                self.add(text);
                bytes = rest.get(1..).unwrap_or_default();
                if end.is_some() {
                    self.emit(ready);
                }
                continue;
            };
            self.is_begun = true;
            let end = bytes.iter().position(|b| matches!(b, b' ' | b'\n'));
            let (word, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            let room = MAX_TIME_BYTES.saturating_sub(prefix.len());
            if word.len() > room {
                let (word, rest) = bytes.split_at(room);
                prefix.extend_from_slice(word);
                bytes = rest;
                self.end_prefix(b"");
                continue;
            }
            prefix.extend_from_slice(word);
            bytes = rest;
            if rest.first() == Some(&b' ') {
                bytes = rest.get(1..).unwrap_or_default();
                self.end_prefix(b" ");
            } else if !rest.is_empty() {
                self.end_prefix(b"");
            }
        }
    }

    /// Takes what was collected as the line's time, or else as text, which `space` followed.
    fn end_prefix(&mut self, space: &[u8]) {
        let Some(prefix) = self.prefix.take() else {
            return;
        };
        let time_ns = std::str::from_utf8(&prefix).ok().and_then(parse_time);
        if time_ns.is_none() {
            self.add(&prefix);
            self.add(space);
        }
        // A later part of the line repeats the time.
        self.time_ns = self.time_ns.or(time_ns);
    }

    fn add(&mut self, text: &[u8]) {
        let room = MAX_LOG_LINE_BYTES.saturating_sub(self.text.len());
        self.is_cut |= text.len() > room;
        self.text.extend(text.iter().take(room));
    }

    fn emit(&mut self, ready: &mut Vec<RawLogLine>) {
        if self.text.ends_with(b"\r") {
            self.text.pop();
        }
        ready.push(RawLogLine {
            stream: self.stream,
            time_ns: self.time_ns.take(),
            text: std::mem::take(&mut self.text),
            is_cut: std::mem::take(&mut self.is_cut),
        });
        self.is_begun = false;
        self.prefix = Some(Vec::new());
    }

    fn finish(&mut self, ready: &mut Vec<RawLogLine>) {
        if self.is_begun {
            self.end_prefix(b"");
            self.emit(ready);
        }
    }
}

/// Parses an RFC 3339 time; returns nanoseconds since 1970.
fn parse_time(text: &str) -> Option<u64> {
    let time = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    u64::try_from(time.unix_timestamp_nanos()).ok()
}

/// Returns the lines of a log that arrives in pieces of at most this many bytes, as fuzz targets read it.
///
/// # Errors
/// The engine's error in the log, or that it ends within a frame.
#[cfg(feature = "testing")]
pub fn read_log_lines(
    has_tty: bool,
    bytes: &[u8],
    piece: usize,
) -> Result<Vec<RawLogLine>, EngineError> {
    let mut reader = LogLines::new(has_tty);
    let mut lines = Vec::new();
    for piece in bytes.chunks(piece.max(1)) {
        lines.extend(reader.push(piece)?);
    }
    lines.extend(reader.finish()?);
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(stream: u8, text: &[u8]) -> Vec<u8> {
        let length = u32::try_from(text.len()).unwrap().to_be_bytes();
        [&[stream, 0, 0, 0], length.as_slice(), text].concat()
    }

    fn read(has_tty: bool, chunks: &[&[u8]]) -> Result<Vec<RawLogLine>, EngineError> {
        let mut lines = LogLines::new(has_tty);
        let mut all = Vec::new();
        for chunk in chunks {
            all.extend(lines.push(chunk)?);
        }
        all.extend(lines.finish()?);
        Ok(all)
    }

    /// What Docker and Podman send: both streams, a long line in parts, an empty line, Podman's times, a line
    /// without a time, bytes that are not UTF-8, and no line feed at the end.
    fn a_log() -> Vec<u8> {
        let part = |text: &str| format!("2026-11-26T01:41:06.939330258Z {text}").into_bytes();
        [
            frame(1, b"2026-11-26T01:41:06.833933090Z out one\n"),
            frame(2, b"2026-11-26T01:41:06.834033029Z err\r\n"),
            frame(1, &part(&"x".repeat(100))),
            frame(2, b"2026-11-26T01:41:07+01:00 between\n"),
            frame(1, &part("y y\n")),
            frame(1, b"2026-11-26T01:41:07Z \n"),
            frame(1, b""),
            frame(2, b"a word that is no time, and \xff\n"),
            frame(
                2,
                b"a-word-that-is-much-too-long-for-a-time-and-has-no-space\n",
            ),
            frame(1, b"2026-11-26T01:41:08Z the end"),
        ]
        .concat()
    }

    #[test]
    fn frames_become_lines_of_their_stream() {
        let log = a_log();
        let lines = read(false, &[&log]).unwrap();
        let shown = lines.iter().map(|line| {
            let text = String::from_utf8_lossy(&line.text).into_owned();
            (
                line.stream,
                line.time_ns.map(|ns| ns % 100_000_000_000),
                text,
            )
        });
        let (out, err) = (EngineLogStream::Stdout, EngineLogStream::Stderr);
        let expected = [
            (out, Some(66_833_933_090), "out one".to_owned()),
            (err, Some(66_834_033_029), "err".to_owned()),
            (err, Some(67_000_000_000), "between".to_owned()),
            (out, Some(66_939_330_258), "x".repeat(100) + "y y"),
            (out, Some(67_000_000_000), String::new()),
            (err, None, "a word that is no time, and \u{fffd}".to_owned()),
            (
                err,
                None,
                "a-word-that-is-much-too-long-for-a-time-and-has-no-space".to_owned(),
            ),
            (out, Some(68_000_000_000), "the end".to_owned()),
        ];
        assert_eq!(shown.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_lines_are_the_same_however_the_bytes_arrive() {
        let log = a_log();
        let whole = read(false, &[&log]).unwrap();
        for size in 1..=log.len() {
            let chunks: Vec<&[u8]> = log.chunks(size).collect();
            assert_eq!(read(false, &chunks).unwrap(), whole, "{size}");
        }
        for cut in 0..=log.len() {
            let (first, second) = log.split_at(cut);
            assert_eq!(read(false, &[first, second]).unwrap(), whole, "{cut}");
        }
        let terminal = b"2026-11-26T01:41:07Z tty\r\nno time here\r\n2026-11-26T01:41:08Z \r\nx";
        let whole = read(true, &[terminal]).unwrap();
        assert_eq!(whole.len(), 4);
        for size in 1..=terminal.len() {
            let chunks: Vec<&[u8]> = terminal.chunks(size).collect();
            assert_eq!(read(true, &chunks).unwrap(), whole, "{size}");
        }
    }

    #[test]
    fn a_long_line_is_cut_and_not_kept_in_memory() {
        let long = [
            b"2026-11-26T01:41:07Z ".as_slice(),
            "x".repeat(100_000).as_bytes(),
            b"\nnext",
        ]
        .concat();
        for (has_tty, bytes) in [(true, long.clone()), (false, frame(1, &long))] {
            let lines = read(has_tty, &[&bytes]).unwrap();
            assert_eq!(lines[0].text.len(), MAX_LOG_LINE_BYTES);
            assert!(lines[0].is_cut && !lines[1].is_cut);
            assert_eq!(lines[1].text, b"next");
        }
    }

    #[test]
    fn an_error_of_the_engine_in_a_log_is_an_error() {
        let bytes = frame(3, b"Error grabbing logs: the file is broken\n");
        let error = read(false, &[&bytes]).unwrap_err();
        assert!(matches!(&error, EngineError::Refused(_)), "{error}");
        assert!(error.message().contains("the file is broken"), "{error}");
    }

    #[test]
    fn bytes_that_are_no_frames_are_unreadable() {
        for bytes in [
            b"2026-11-26T01:41:07Z tty\n".as_slice(),
            &[4, 0, 0, 0, 0, 0, 0, 1],
            &[1, 0, 1, 0, 0, 0, 0, 1],
        ] {
            let error = read(false, &[bytes]).unwrap_err();
            assert!(matches!(&error, EngineError::Unreadable(_)), "{error}");
        }
        for end in [3, 10] {
            let bytes = frame(1, b"2026-11-26T01:41:07Z x\n");
            let error = read(false, &[&bytes[..end]]).unwrap_err();
            assert!(matches!(&error, EngineError::Unavailable(_)), "{error}");
        }
    }
}
