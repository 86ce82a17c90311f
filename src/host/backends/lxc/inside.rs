//! A container's logs and files.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::helper_client::{
    Capture, ContainerAction, ContainerRef, FileExcerpt, InsideEntry, InsidePath, LogCursor,
    LogFile, Operation, PrintedHeader, PrintedLine,
};
use gatewren_base::sys::{neutralise, rfc3339};

use super::super::access_filter::unmask_error;
use super::super::error::{BackendError, ErrorKind};
use super::super::request::{limits, operation_error};
use super::changes::{check_length, unreadable_answer};
use super::containers::LxcView;

/// The timeout for reading or writing.
const TIME: Duration = Duration::from_secs(30);

/// The maximum bytes of a log or file in one answer.
pub const PART_BYTES: u32 = 32 * 1024;

/// How much of an answer is kept: a part with the line before it, or a page of a directory.
const CAPTURE: Capture = Capture {
    head: 1024 * 1024,
    tail: 0,
};

/// The source of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogSource {
    /// The journal that systemd keeps inside, while it runs.
    Journal,
    /// The console's output, if the configuration has it logged.
    Console,
    /// LXC's own log, mostly of starts.
    Lxc,
    /// What a container of Docker or Podman printed.
    Output,
}

/// A part of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LogPart {
    /// The source of the log.
    pub source: LogSource,
    /// The lines, oldest first; control characters are escaped.
    pub text: String,
    /// Whether lines were left out before these, or, after a cursor, after them.
    pub truncated: bool,
    /// The cursor before the first journal line, to request earlier lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_cursor: Option<LogCursor>,
    /// The cursor after the last journal line, to request later lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<LogCursor>,
    /// The offset in the file at which the part begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// The offset in the file after the part, to request later output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<u64>,
}

/// A file to write in a container.
#[derive(Debug)]
pub struct NewFileContent<'a> {
    /// Its path.
    pub path: InsidePath,
    /// Its content.
    pub content: &'a [u8],
    /// Its permissions, if they are to change.
    pub mode: Option<u32>,
    /// Whether the call was judged as one on the host.
    pub on_host: bool,
}

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InsidePart {
    /// The content, if it is text, unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The content in base64, if it is not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
    /// The offset at which the part begins.
    pub offset: u64,
    /// The file's size in bytes.
    pub size_bytes: u64,
    /// Whether there is more after it.
    pub truncated: bool,
    /// The offset of the next part, if there is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<u64>,
}

/// A page of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DirectoryPage {
    /// The entries, sorted by name.
    pub entries: Vec<InsideEntry>,
    /// Whether there are more entries; pass the last name as `after` to get them.
    pub truncated: bool,
}

impl LxcView {
    /// Returns a part of a log file: from an offset on, or the last lines.
    pub async fn log_file(
        &self,
        name: &ContainerRef,
        log: LogFile,
        lines: u32,
        offset: Option<u64>,
    ) -> Result<LogPart, BackendError> {
        let action = ContainerAction::Log {
            log,
            offset,
            bytes: PART_BYTES,
        };
        let (answer, _) = self.bytes(name, action, CAPTURE).await?;
        let (from, bytes) = split(&answer)?;
        let (bytes, skipped) = match offset {
            Some(_) => (bytes, 0),
            None => last_lines(bytes, lines, from.offset > 0),
        };
        let offset = from.offset + skipped;
        Ok(LogPart {
            source: match log {
                LogFile::Console => LogSource::Console,
                LogFile::Lxc => LogSource::Lxc,
            },
            text: neutralise(&String::from_utf8_lossy(bytes)).into_owned(),
            truncated: offset > 0,
            start_cursor: None,
            cursor: None,
            offset: Some(offset),
            next_offset: Some(offset + bytes.len() as u64),
        })
    }

    /// Returns what a container of an engine printed: the last lines, or those after or before a cursor.
    pub async fn printed(
        &self,
        name: &ContainerRef,
        lines: u32,
        after: Option<LogCursor>,
        before: Option<LogCursor>,
    ) -> Result<LogPart, BackendError> {
        let from = after.clone().or_else(|| before.clone());
        let action = ContainerAction::Printed {
            lines,
            after,
            before,
        };
        let (answer, _) = self.bytes(name, action, CAPTURE).await?;
        let mut answer = answer.split(|byte| *byte == b'\n');
        let header: PrintedHeader = parse(answer.next().unwrap_or_default())?;
        let printed = answer.filter(|line| !line.is_empty()).map(parse);
        let printed: Vec<PrintedLine> = printed.collect::<Result<_, _>>()?;
        let cursor = |line: &PrintedLine| line.cursor.clone();
        Ok(LogPart {
            source: LogSource::Output,
            text: printed.iter().map(line_text).collect(),
            truncated: header.has_more,
            start_cursor: printed.first().map(cursor).or_else(|| from.clone()),
            cursor: printed.last().map(cursor).or(from),
            offset: None,
            next_offset: None,
        })
    }

    /// Returns a page of a directory, starting after a name.
    pub async fn list_files(
        &self,
        name: &ContainerRef,
        path: InsidePath,
        after: Option<String>,
        limit: u32,
    ) -> Result<DirectoryPage, BackendError> {
        after.as_deref().map_or(Ok(()), check_length)?;
        // One more than requested shows whether there are more.
        let action = ContainerAction::ListFiles {
            path,
            after,
            limit: limit + 1,
        };
        let (answer, _) = self.bytes(name, action, CAPTURE).await?;
        let lines = answer
            .split(|b| *b == b'\n')
            .filter(|line| !line.is_empty());
        let entries: Result<Vec<InsideEntry>, _> = lines.map(serde_json::from_slice).collect();
        let mut entries = entries.map_err(|cause| unreadable_answer(&cause))?;
        let limit = usize::try_from(limit).unwrap_or_default();
        let truncated = entries.len() > limit;
        entries.truncate(limit);
        Ok(DirectoryPage { entries, truncated })
    }

    /// Returns a part of a file.
    pub async fn read_file(
        &self,
        name: &ContainerRef,
        path: InsidePath,
        offset: u64,
        bytes: u32,
    ) -> Result<InsidePart, BackendError> {
        let action = ContainerAction::ReadFile {
            path,
            offset,
            bytes: bytes.min(PART_BYTES),
        };
        let (answer, _) = self.bytes(name, action, CAPTURE).await?;
        let (from, bytes) = split(&answer)?;
        let bytes = whole_characters(bytes, offset + (bytes.len() as u64) < from.size_bytes);
        let next = offset + bytes.len() as u64;
        let truncated = next < from.size_bytes && !bytes.is_empty();
        let text = std::str::from_utf8(bytes).ok();
        let text = text.filter(|text| !text.contains('\0'));
        Ok(InsidePart {
            base64: text.is_none().then(|| STANDARD.encode(bytes)),
            text: text.map(str::to_owned),
            offset,
            size_bytes: from.size_bytes,
            truncated,
            next_offset: truncated.then_some(next),
        })
    }

    /// Writes a file atomically.
    pub async fn write_file(
        &self,
        name: &ContainerRef,
        file: NewFileContent<'_>,
    ) -> Result<(), BackendError> {
        let action = ContainerAction::WriteFile {
            path: file.path,
            content: STANDARD.encode(file.content),
            mode: file.mode,
            on_host: file.on_host,
        };
        self.perform(name, action, TIME).await.map(drop)
    }

    /// Returns the output, and whether some of it is missing.
    async fn bytes(
        &self,
        name: &ContainerRef,
        action: ContainerAction,
        capture: Capture,
    ) -> Result<(Vec<u8>, bool), BackendError> {
        let asked = self.query_name(name);
        let container = asked.clone();
        let operation = Operation::ContainerAction { container, action };
        let finished = self.run(operation, limits(TIME), capture).await?;
        let heard = finished.stderr.text_lossy();
        let answer = operation_error(&finished.ending, &neutralise(&heard)).map_or(Ok(()), Err);
        unmask_error(name, &asked, answer)?;
        let truncated = finished.stdout.truncated();
        Ok((
            [finished.stdout.head, finished.stdout.tail].concat(),
            truncated,
        ))
    }
}

/// Formats a printed line: its time, a mark for stderr, and its text.
fn line_text(line: &PrintedLine) -> String {
    let time = rfc3339(line.time_ms);
    let mark = if line.is_stderr { " [stderr]" } else { "" };
    let end = if line.is_cut { "..." } else { "" };
    format!("{time}{mark} {}{end}\n", neutralise(&line.text))
}

fn parse<T: DeserializeOwned>(line: &[u8]) -> Result<T, BackendError> {
    serde_json::from_slice(line).map_err(|cause| {
        let words = format!("the helper's answer about a log is invalid: {cause}");
        BackendError::new(ErrorKind::Failed, words)
    })
}

/// Splits an answer into its header line and the part.
fn split(answer: &[u8]) -> Result<(FileExcerpt, &[u8]), BackendError> {
    let end = answer.iter().position(|b| *b == b'\n');
    let (line, rest) = end
        .and_then(|end| answer.split_at_checked(end))
        .unwrap_or((answer, &[]));
    let excerpt = serde_json::from_slice(line).map_err(|cause| unreadable_answer(&cause))?;
    Ok((excerpt, rest.get(1..).unwrap_or_default()))
}

/// Removes a character that is cut at the end, if more text follows: the next part has it whole.
fn whole_characters(bytes: &[u8], goes_on: bool) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(cut) if goes_on && cut.error_len().is_none() && cut.valid_up_to() > 0 => {
            bytes.get(..cut.valid_up_to()).unwrap_or(bytes)
        }
        _ => bytes,
    }
}

/// Returns the last lines of a part and the number of bytes before them. A first line that may be
/// incomplete is left out.
fn last_lines(bytes: &[u8], lines: u32, begins_inside: bool) -> (&[u8], u64) {
    let ends = |bytes: &[u8]| -> Vec<usize> {
        let ends = bytes.iter().enumerate().filter(|(_, b)| **b == b'\n');
        ends.map(|(at, _)| at + 1).collect()
    };
    let mut starts: Vec<usize> = ends(bytes);
    if !begins_inside || starts.is_empty() {
        starts.insert(0, 0);
    }
    // No line starts after the last line feed.
    starts.retain(|start| *start < bytes.len());
    let many = usize::try_from(lines).unwrap_or(usize::MAX);
    let first = starts.len().saturating_sub(many);
    let start = starts.get(first).copied().unwrap_or(bytes.len());
    (bytes.get(start..).unwrap_or_default(), start as u64)
}

/// Decodes base64.
pub fn from_base64(text: &str) -> Result<Vec<u8>, BackendError> {
    STANDARD
        .decode(text.trim())
        .map_err(|_| BackendError::new(ErrorKind::Refused, "the content is not base64"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_whole_ones() {
        let last = |lines, inside| last_lines(b"lf\none\ntwo\nend", lines, inside);
        assert_eq!(last(2, false), (&b"two\nend"[..], 7));
        assert_eq!(last(9, false), (&b"lf\none\ntwo\nend"[..], 0));
        assert_eq!(last(9, true), (&b"one\ntwo\nend"[..], 3));
        assert_eq!(last_lines(b"a\nb\n", 1, false), (&b"b\n"[..], 2));
        assert_eq!(last_lines(b"", 3, false), (&b""[..], 0));
        assert_eq!(last_lines(b"no end", 3, true), (&b"no end"[..], 0));
    }

    #[test]
    fn text_is_cut_between_characters() {
        let text = "aä".as_bytes();
        assert_eq!(whole_characters(&text[..2], true), b"a");
        assert_eq!(whole_characters(&text[..2], false), &text[..2]);
        assert_eq!(whole_characters(text, true), text);
        assert_eq!(whole_characters(b"a\xffb", true), b"a\xffb");
        assert_eq!(whole_characters(&text[1..2], true), &text[1..2]);
    }

    #[test]
    fn a_part_is_behind_its_line() {
        let (from, bytes) = split(b"{\"size_bytes\":9,\"offset\":4}\na\nb\0").unwrap();
        assert_eq!((from.size_bytes, from.offset), (9, 4));
        assert_eq!(bytes, b"a\nb\0");
        assert!(split(b"").is_err() && split(b"x\ny").is_err());
    }
}
