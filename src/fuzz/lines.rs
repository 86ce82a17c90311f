//! stdio: what a client writes falls into its lines, wherever the reads fall, and a long one costs no memory.

use std::future::Future as _;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use crate::transport::lines_of;

/// First byte: how much is read at once; second byte: the longest line; the rest: what the client writes.
pub fn are_cut_at_newlines(data: &[u8]) {
    let [piece, longest, written @ ..] = data else {
        return;
    };
    let (piece, longest) = (usize::from(*piece).max(1), usize::from(*longest));
    let mut reading = pin!(lines_of(written, piece, longest));
    let mut cx = Context::from_waker(Waker::noop());
    // Bytes in memory are always there.
    let Poll::Ready(found) = reading.as_mut().poll(&mut cx) else {
        panic!("it waits for what is there");
    };
    let mut wanted: Vec<_> = written.split(|b| *b == b'\n').collect();
    // Behind the last newline there is a line only if something stands there.
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
