//! Parses server-sent events (WHATWG HTML, 9.2) as they arrive.

use std::collections::VecDeque;
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;

use super::request_error::{DeliveryStatus, UpstreamError};

/// The largest message that is forwarded to the client; a larger one ends its stream.
pub const MAX_MESSAGE: usize = 32 << 20;

/// A stream without data for this long is dead: gatewren sends a comment every 15 s.
const SILENT: Duration = Duration::from_mins(1);

/// An event.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct SseEvent {
    /// Its id, if any.
    pub id: Option<String>,
    /// The server's reconnection delay.
    pub retry: Option<Duration>,
    /// The message; empty if there is none.
    pub data: Vec<u8>,
}

/// A response body that is a stream of events.
pub struct SseReader {
    body: Incoming,
    reader: Reader,
}

impl SseReader {
    /// Returns the events of a body.
    pub fn of(body: Incoming) -> Self {
        let reader = Reader::default();
        Self { body, reader }
    }

    /// Returns the next event; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<SseEvent>, UpstreamError> {
        let broke = |words: String| UpstreamError::new(DeliveryStatus::Unknown, words);
        loop {
            if let Some(event) = self.reader.whole.pop_front() {
                return Ok(Some(event));
            }
            let frame = tokio::time::timeout(SILENT, self.body.frame());
            let frame = frame.await.map_err(|_| {
                let words = format!("the server sent nothing for {} s", SILENT.as_secs());
                broke(words)
            })?;
            let Some(frame) = frame else {
                return Ok(None);
            };
            let frame = frame.map_err(|cause| broke(format!("the stream broke: {cause}")))?;
            if let Ok(bytes) = frame.into_data()
                && !self.reader.read(&bytes)
            {
                let words = format!("the server sent a message of more than {MAX_MESSAGE} bytes");
                return Err(broke(words));
            }
        }
    }
}

/// The parser's state.
#[derive(Default)]
struct Reader {
    line: Vec<u8>,
    begun: SseEvent,
    whole: VecDeque<SseEvent>,
}

impl Reader {
    /// Parses more bytes. Returns false if an event is too large.
    fn read(&mut self, mut bytes: &[u8]) -> bool {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (part, rest) = bytes.split_at(end);
            if !self.extend(part) {
                return false;
            }
            let line = std::mem::take(&mut self.line);
            self.end_line(line.strip_suffix(b"\r").unwrap_or(&line));
            bytes = rest.get(1..).unwrap_or_default();
        }
        self.extend(bytes)
    }

    fn extend(&mut self, part: &[u8]) -> bool {
        let length = self.line.len() + self.begun.data.len() + part.len();
        if length <= MAX_MESSAGE {
            self.line.extend_from_slice(part);
        }
        length <= MAX_MESSAGE
    }

    fn end_line(&mut self, line: &[u8]) {
        if line.is_empty() {
            let event = std::mem::take(&mut self.begun);
            if event != SseEvent::default() {
                self.whole.push_back(event);
            }
            return;
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = line.split_at(colon.unwrap_or(line.len()));
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let text = || String::from_utf8(value.to_vec()).ok();
        match name {
            b"data" => {
                if !self.begun.data.is_empty() {
                    self.begun.data.push(b'\n');
                }
                self.begun.data.extend_from_slice(value);
            }
            b"id" => self.begun.id = text(),
            b"retry" => {
                let ms = text().and_then(|text| text.parse().ok());
                self.begun.retry = ms.map(Duration::from_millis);
            }
            // Comments have an empty name. Event types are ignored: gatewren sends none.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(pieces: &[&str]) -> Vec<(Option<String>, Option<u64>, String)> {
        let mut reader = Reader::default();
        for piece in pieces {
            assert!(reader.read(piece.as_bytes()));
        }
        let shown = |event: SseEvent| {
            let data = String::from_utf8(event.data).unwrap();
            let retry = event.retry.map(|retry| retry.as_millis());
            (event.id, retry.map(|ms| u64::try_from(ms).unwrap()), data)
        };
        reader.whole.into_iter().map(shown).collect()
    }

    #[test]
    fn events_are_read_wherever_the_pieces_are_cut() {
        let text = ": hello\n\nid: 1\nretry: 500\ndata: \n\ndata: {\"a\":1}\r\n\r\nevent: message\nid:2\ndata: one\ndata:two\n\ndata: cut";
        let expected = [
            (Some("1".to_owned()), Some(500), String::new()),
            (None, None, "{\"a\":1}".to_owned()),
            (Some("2".to_owned()), None, "one\ntwo".to_owned()),
        ];
        assert_eq!(events(&[text]), expected);
        let single: Vec<String> = text.chars().map(String::from).collect();
        let single: Vec<&str> = single.iter().map(String::as_str).collect();
        assert_eq!(events(&single), expected);
    }

    #[test]
    fn a_message_that_is_too_large_is_not_kept() {
        let mut reader = Reader::default();
        assert!(reader.read(b"data: "));
        let piece = vec![b'a'; MAX_MESSAGE / 2];
        assert!(reader.read(&piece));
        assert!(!reader.read(&piece));
        assert!(reader.line.len() <= MAX_MESSAGE);
    }
}
