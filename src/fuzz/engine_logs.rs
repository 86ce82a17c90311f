//! The log of a container: however its bytes are split, the same lines come out, and all text of a frame is kept.

use gatewren_helper::{EngineLogStream, MAX_LOG_LINE_BYTES, RawLogLine, read_log_lines};

/// First byte: even for frames, odd for a terminal; second byte: how the rest is split; the rest: the log.
pub fn are_the_same_lines_in_any_pieces(data: &[u8]) {
    let [kind, piece, bytes @ ..] = data else {
        return;
    };
    let has_tty = kind % 2 == 1;
    let whole = read_log_lines(has_tty, bytes, bytes.len());
    let in_pieces = read_log_lines(has_tty, bytes, usize::from(*piece));
    match (&whole, &in_pieces) {
        (Ok(whole), Ok(in_pieces)) => assert_eq!(in_pieces, whole, "in pieces of {piece}"),
        // The engine's words are the same too.
        (Err(whole), Err(in_pieces)) => assert_eq!(in_pieces.to_string(), whole.to_string()),
        _ => panic!("in pieces of {piece}: {in_pieces:?}; whole: {whole:?}"),
    }
    for line in whole.iter().flatten() {
        check(line, has_tty);
    }
    round_trip(bytes);
}

fn check(line: &RawLogLine, has_tty: bool) {
    assert!(line.text.len() <= MAX_LOG_LINE_BYTES, "{line:?}");
    assert!(!line.text.contains(&b'\n'), "{line:?}");
    assert_eq!(
        line.stream == EngineLogStream::Terminal,
        has_tty,
        "{line:?}"
    );
}

/// Each line of these bytes, in a frame of its own with a time, comes out as it is.
fn round_trip(bytes: &[u8]) {
    let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let mut log = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let mut text = b"2026-07-28T09:30:00.000000001Z ".to_vec();
        text.extend_from_slice(line);
        text.push(b'\n');
        let length = u32::try_from(text.len()).unwrap_or_default();
        let stream = if number % 2 == 0 { 1 } else { 2 };
        log.extend([stream, 0, 0, 0]);
        log.extend(length.to_be_bytes());
        log.extend(text);
    }
    let Ok(read) = read_log_lines(false, &log, log.len()) else {
        panic!("{log:?} is not read");
    };
    let texts: Vec<&[u8]> = read.iter().map(|line| line.text.as_slice()).collect();
    let wanted: Vec<&[u8]> = lines.into_iter().map(kept).collect();
    assert_eq!(texts, wanted);
    assert!(read.iter().all(|line| line.time_ns.is_some()), "{read:?}");
}

/// What is kept of a line: it may be cut, and it may end with CR LF.
fn kept(line: &[u8]) -> &[u8] {
    let line = line.get(..MAX_LOG_LINE_BYTES).unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}
