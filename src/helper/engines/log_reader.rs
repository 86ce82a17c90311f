//! Reads a part of a container's log: as many lines as wanted and allowed, with their positions.

use std::collections::VecDeque;

use super::client::EngineClient;
use super::container_id::EngineContainerId;
use super::endpoint::EngineEndpoint;
use super::error::EngineError;
use super::kind::EngineKind;
use super::log_lines::{LogLines, RawLogLine};
use super::log_request::{
    EngineLogOrder, EngineLogPosition, EngineLogRequest, EngineLogStream, LogBounds, LogQueryString,
};

/// The most bytes of text in one answer; further lines are left out.
pub const MAX_LOG_BYTES: usize = 1024 * 1024;

/// A part of a log, in the order of the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EngineLog {
    /// The lines.
    pub lines: Vec<EngineLogLine>,
    /// Whether lines that the request covers were left out: older ones with [`EngineLogOrder::Newest`], newer ones
    /// with [`EngineLogOrder::Oldest`].
    pub has_more: bool,
}

/// A line of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineLogLine {
    /// Its position, which has its time. A line without a time has that of the line before it.
    pub position: EngineLogPosition,
    /// Where it comes from.
    pub stream: EngineLogStream,
    /// Its text as the container wrote it; bytes that are not UTF-8 are replaced. It is not sanitized.
    pub text: String,
    /// Whether the end of a line of more than 16 KiB was left out.
    pub is_cut: bool,
}

/// Collects the wanted lines.
struct LogCollector {
    bounds: LogBounds,
    order: EngineLogOrder,
    max_lines: usize,
    stream: Option<EngineLogStream>,
    lines: VecDeque<EngineLogLine>,
    bytes: usize,
    has_more: bool,
    /// The position of the last line, wanted or not.
    last: EngineLogPosition,
    /// The time of the first line.
    first_ns: Option<u64>,
    /// The number of lines, wanted or not, and of the engine's frames for them.
    seen: usize,
    frames: usize,
}

/// Reads a part of a log.
pub(super) async fn read_log(
    client: &EngineClient,
    id: &EngineContainerId,
    request: &EngineLogRequest,
) -> Result<EngineLog, EngineError> {
    let bounds = LogBounds::new(client.kind(), request)?;
    // One more than wanted shows whether there are more.
    let tail = match request.order {
        EngineLogOrder::Newest => Some(request.max_lines.saturating_add(1)),
        EngineLogOrder::Oldest => None,
    };
    let query = bounds.query(tail, 0);
    let first = read_once(client, id, request, query).await?;
    let is_short = query.tail.is_some_and(|tail| first.is_short(tail));
    // Podman has whole seconds as times, so the numbers of lines are known only after all lines of the first second
    // were read. Docker counts each frame of a long line as one, so the first line may lack its beginning.
    let may_begin_late = is_short || client.kind() == EngineKind::Podman;
    let Some(first_ns) = first
        .first_ns
        .filter(|_| may_begin_late && query.tail.is_some())
    else {
        return Ok(first.into_log(false));
    };
    let query = bounds.query(None, first_ns);
    let second = read_once(client, id, request, query).await?;
    Ok(second.into_log(first.has_more || is_short))
}

async fn read_once(
    client: &EngineClient,
    id: &EngineContainerId,
    request: &EngineLogRequest,
    query: LogQueryString,
) -> Result<LogCollector, EngineError> {
    let endpoint = EngineEndpoint::Logs(id, query);
    let mut collector = LogCollector::new(client.kind(), request)?;
    let answer = async {
        let mut response = client.open(&endpoint, String::new()).await?;
        let mut lines = LogLines::new(request.has_tty);
        while let Some(part) = response.next_part().await? {
            if collector.take_all(&lines.push(&part)?) {
                return Ok(());
            }
        }
        collector.frames = lines.frames();
        collector.take_all(&lines.finish()?);
        Ok(())
    };
    client.within_time(&endpoint, answer).await?;
    Ok(collector)
}

impl LogCollector {
    fn new(kind: EngineKind, request: &EngineLogRequest) -> Result<Self, EngineError> {
        Ok(Self {
            bounds: LogBounds::new(kind, request)?,
            order: request.order,
            max_lines: request.max_lines as usize,
            stream: request.stream,
            lines: VecDeque::new(),
            bytes: 0,
            has_more: false,
            last: EngineLogPosition::default(),
            first_ns: None,
            seen: 0,
            frames: 0,
        })
    }

    /// Takes the next lines of the log. Returns whether further ones cannot be wanted.
    fn take_all(&mut self, lines: &[RawLogLine]) -> bool {
        lines.iter().any(|line| self.take(line))
    }

    fn take(&mut self, line: &RawLogLine) -> bool {
        let time_ns = line.time_ns.unwrap_or(self.last.time_ns);
        let number = if time_ns == self.last.time_ns {
            self.last.number.saturating_add(1)
        } else {
            1
        };
        self.last = EngineLogPosition { time_ns, number };
        self.seen += 1;
        self.first_ns = self.first_ns.or(Some(time_ns));
        let is_of_stream = self.stream.is_none_or(|stream| stream == line.stream);
        if !is_of_stream || !self.bounds.contains(self.last) {
            return false;
        }
        let line = EngineLogLine {
            position: self.last,
            stream: line.stream,
            text: String::from_utf8_lossy(&line.text).into_owned(),
            is_cut: line.is_cut,
        };
        let is_full = |lines: usize, bytes: usize| lines > self.max_lines || bytes > MAX_LOG_BYTES;
        if self.order == EngineLogOrder::Oldest
            && is_full(self.lines.len() + 1, self.bytes + line.text.len())
        {
            self.has_more = true;
            return true;
        }
        self.bytes += line.text.len();
        self.lines.push_back(line);
        while self.lines.len() > self.max_lines || self.bytes > MAX_LOG_BYTES {
            let oldest = self.lines.pop_front();
            self.bytes -= oldest.map_or(0, |line| line.text.len());
            self.has_more = true;
        }
        false
    }

    /// Whether there are fewer lines than asked for, because some consist of several frames.
    fn is_short(&self, tail: u32) -> bool {
        let tail = tail as usize;
        self.frames >= tail && self.seen < tail
    }

    fn into_log(self, has_more: bool) -> EngineLog {
        EngineLog {
            lines: self.lines.into(),
            has_more: self.has_more || has_more,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::fake_engine::{FakeAnswer, FakeEngine, chunked, pong};
    use crate::engines::log_request::MAX_LOG_LINES;

    fn request() -> EngineLogRequest {
        EngineLogRequest {
            has_tty: false,
            order: EngineLogOrder::Newest,
            max_lines: 3,
            stream: None,
            after: None,
            before: None,
            since_ms: None,
            until_ms: None,
        }
    }

    fn frame(stream: u8, text: &str) -> Vec<u8> {
        let length = u32::try_from(text.len()).unwrap().to_be_bytes();
        [&[stream, 0, 0, 0], length.as_slice(), text.as_bytes()].concat()
    }

    /// A log of one line a second, from the second 1 on; every third line is of stderr.
    fn lines(seconds: std::ops::RangeInclusive<u32>) -> Vec<Vec<u8>> {
        let line = |s: u32| {
            let stream = if s.is_multiple_of(3) { 2 } else { 1 };
            frame(
                stream,
                &format!("1970-01-01T00:{:02}:{:02}.5Z line {s}\n", s / 60, s % 60),
            )
        };
        seconds.map(line).collect()
    }

    fn answer(frames: &[Vec<u8>]) -> FakeAnswer {
        let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
        chunked(&frames)
    }

    fn texts(log: &EngineLog) -> Vec<&str> {
        log.lines.iter().map(|line| line.text.as_str()).collect()
    }

    fn an_id() -> EngineContainerId {
        EngineContainerId::parse(&"ab".repeat(32)).unwrap()
    }

    async fn read(engine: &FakeEngine, kind: EngineKind, request: EngineLogRequest) -> EngineLog {
        engine.api(kind).logs(&an_id(), &request).await.unwrap()
    }

    #[tokio::test]
    async fn the_newest_lines_are_asked_for_with_one_more() {
        let engine = FakeEngine::docker(|_| answer(&lines(7..=10)));
        let log = read(&engine, EngineKind::Docker, request()).await;
        assert_eq!(texts(&log), ["line 8", "line 9", "line 10"]);
        assert!(log.has_more);
        assert_eq!(log.lines[1].stream, EngineLogStream::Stderr);
        assert_eq!(log.lines[2].position.to_string(), "t=10500000000;n=1");
        let line = engine.requests().pop().unwrap();
        let query = "stdout=1&stderr=1&timestamps=1&tail=4";
        assert_eq!(
            line,
            format!("GET /v1.41/containers/{}/logs?{query}", an_id())
        );
    }

    #[tokio::test]
    async fn reading_on_from_a_position_gives_each_line_once() {
        let engine = FakeEngine::docker(|_| answer(&lines(1..=10)));
        let mut seen = Vec::new();
        let mut after = None;
        loop {
            let part = EngineLogRequest {
                order: EngineLogOrder::Oldest,
                after,
                ..request()
            };
            let log = read(&engine, EngineKind::Docker, part).await;
            seen.extend(texts(&log).into_iter().map(str::to_owned));
            after = log.lines.last().map(|line| line.position);
            if !log.has_more {
                break;
            }
        }
        let all: Vec<String> = (1..=10).map(|n| format!("line {n}")).collect();
        assert_eq!(seen, all);
    }

    #[tokio::test]
    async fn lines_before_a_position_and_of_one_stream_are_selected() {
        let engine = FakeEngine::docker(|_| answer(&lines(1..=20)));
        let part = EngineLogRequest {
            before: Some("t=10500000000;n=1".parse().unwrap()),
            stream: Some(EngineLogStream::Stderr),
            max_lines: 2,
            ..request()
        };
        let log = read(&engine, EngineKind::Docker, part).await;
        assert_eq!(texts(&log), ["line 6", "line 9"]);
        assert!(log.has_more);
        let line = engine.requests().pop().unwrap();
        assert!(line.ends_with("timestamps=1&until=10.500000000"), "{line}");
    }

    #[tokio::test]
    async fn podmans_lines_of_one_second_are_numbered_from_its_first_line() {
        let all: Vec<Vec<u8>> = (1..=9)
            .map(|n| frame(1, &format!("1970-01-01T00:00:0{}Z line {n}\n", n / 5 + 1)))
            .collect();
        let engine = FakeEngine::start(move |request| match request.line.as_str() {
            "GET /_ping" => pong("Api-Version: 1.41\r\nLibpod-Api-Version: 4.3.1\r\n"),
            line if line.contains("tail=3") => answer(&all[6..]),
            _ => answer(&all),
        });
        let newest = EngineLogRequest {
            max_lines: 2,
            ..request()
        };
        let log = read(&engine, EngineKind::Podman, newest).await;
        assert_eq!(texts(&log), ["line 8", "line 9"]);
        assert_eq!(log.lines[1].position.to_string(), "t=2000000000;n=5");
        assert!(log.has_more);
        let line = engine.requests().pop().unwrap();
        assert!(line.ends_with("timestamps=1&since=1.000000000"), "{line}");
        let part = EngineLogRequest {
            after: Some("t=2000000000;n=3".parse().unwrap()),
            ..request()
        };
        let rest = read(&engine, EngineKind::Podman, part).await;
        assert_eq!(texts(&rest), ["line 8", "line 9"]);
    }

    #[tokio::test]
    async fn a_long_line_of_docker_is_not_returned_without_its_beginning() {
        let part = |text: &str| frame(1, &format!("1970-01-01T00:00:01.5Z {text}"));
        let all = [part("aaa"), part("bbb"), part("ccc\n")];
        let all = [all.to_vec(), lines(2..=2)].concat();
        let engine = FakeEngine::docker(move |request| {
            if request.line.ends_with("tail=3") {
                return answer(&all[1..]);
            }
            answer(&all)
        });
        let newest = EngineLogRequest {
            max_lines: 2,
            ..request()
        };
        let log = read(&engine, EngineKind::Docker, newest).await;
        assert_eq!(texts(&log), ["aaabbbccc", "line 2"]);
        // Lines before these were not read, so there may be some.
        assert!(log.has_more);
        let line = engine.requests().pop().unwrap();
        assert!(line.ends_with("timestamps=1&since=1.500000000"), "{line}");
    }

    #[tokio::test]
    async fn an_answer_without_end_is_bounded_in_both_orders() {
        for (order, is_endless) in [
            (EngineLogOrder::Oldest, true),
            (EngineLogOrder::Newest, false),
        ] {
            let engine = FakeEngine::docker(move |_| {
                let line = format!("1970-01-01T00:00:01Z {}\n", "x".repeat(60_000));
                let mut chunk = format!("{:x}\r\n", line.len() + 8).into_bytes();
                chunk.extend(frame(1, &line));
                chunk.extend(b"\r\n");
                let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
                if is_endless {
                    return FakeAnswer::Flood(head, chunk, 100_000_000);
                }
                let mut parts = vec![head];
                parts.extend(std::iter::repeat_n(chunk, 200));
                parts.push(b"0\r\n\r\n".to_vec());
                FakeAnswer::Parts(parts)
            });
            let part = EngineLogRequest {
                order,
                max_lines: MAX_LOG_LINES,
                ..request()
            };
            let log = read(&engine, EngineKind::Docker, part).await;
            assert!(log.has_more && log.lines.iter().all(|line| line.is_cut));
            let bytes: usize = log.lines.iter().map(|line| line.text.len()).sum();
            assert!(bytes <= MAX_LOG_BYTES && bytes > MAX_LOG_BYTES - 16 * 1024);
            assert!(engine.sent() < 20_000_000, "{}", engine.sent());
        }
    }
}
