//! stdio: a client's bytes are split into lines, wherever the reads fall, and a long line costs no memory.

use std::future::Future as _;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use gatewren_server::transport::lines_of;

/// First byte: the size of a read; second byte: the maximum line length; the rest: the client's bytes.
pub fn are_cut_at_newlines(data: &[u8]) {
    let [piece, longest, written @ ..] = data else {
        return;
    };
    let (piece, longest) = (usize::from(*piece).max(1), usize::from(*longest));
    let mut reading = pin!(lines_of(written, piece, longest));
    let mut cx = Context::from_waker(Waker::noop());
    // Bytes in memory are always ready.
    let Poll::Ready(found) = reading.as_mut().poll(&mut cx) else {
        panic!("it waits although all bytes are ready");
    };
    let mut wanted: Vec<_> = written.split(|b| *b == b'\n').collect();
    // After the last newline there is a line only if it is not empty.
    if wanted.last().is_some_and(|last| last.is_empty()) {
        wanted.pop();
    }
    let wanted: Vec<Option<&[u8]>> = wanted
        .into_iter()
        .map(|line| (line.len() <= longest).then_some(line))
        .collect();
    let found: Vec<Option<&[u8]>> = found.iter().map(Option::as_deref).collect();
    assert_eq!(found, wanted);
}
