//! Carries a command's output to the caller until the command ends or has to.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::exec::{Ending, Frame, KillReason, Stream};

use super::{
    outbox::Outbox,
    outputs::{CHUNK_BYTES, Outputs},
    stop::Stop,
};

/// How long a caller that does not read may hold up the end of its own call; then it hears nothing more.
const LAST_WORDS_TIME: Duration = Duration::from_secs(5);

/// One call's way back to its caller.
#[derive(Debug)]
pub struct Pump {
    stream: UnixStream,
    outbox: Outbox,
    output_left: u64,
    stop: Stop,
    reachable: bool,
}

impl Pump {
    /// For the caller at `stream`, who gets at most `output_bytes` of output.
    pub fn new(stream: UnixStream, output_bytes: u64, stop: Stop) -> Self {
        Self {
            stream,
            outbox: Outbox::default(),
            output_left: output_bytes,
            stop,
            reachable: true,
        }
    }

    /// Waits for something that has no output, but no longer than the call may last.
    pub async fn wait<T>(&mut self, something: impl Future<Output = T>) -> Result<T, KillReason> {
        tokio::select! {
            why = self.stop.ordered(&self.stream) => Err(why),
            done = something => Ok(done),
        }
    }

    /// Carries output until `ended`, or until there is a reason to kill. What is still in the pipes then
    /// is left to [`Self::drain`]: a child in the background may hold them open for ever.
    pub async fn carry(
        &mut self,
        outputs: &mut Outputs,
        ended: impl Future<Output = Ending>,
    ) -> Ending {
        let mut ended = pin!(ended);
        let stream = &self.stream;
        let mut ordered = pin!(self.stop.ordered(stream));
        loop {
            tokio::select! {
                biased;
                why = &mut ordered => return Ending::Killed { why },
                ending = &mut ended => return ending,
                sent = self.outbox.send_some(stream), if !self.outbox.is_empty() => {
                    if sent.is_err() {
                        self.reachable = false;
                        return Ending::Killed { why: KillReason::Cancelled };
                    }
                }
                (which, bytes) = outputs.next(), if self.outbox.is_empty() => {
                    if !put(&mut self.outbox, &mut self.output_left, which, bytes) {
                        return Ending::Killed { why: KillReason::Output };
                    }
                }
            }
        }
    }

    /// Sends what is still in the pipes, now that nobody writes to them any more.
    pub async fn drain(&mut self, outputs: &mut Outputs) {
        for which in [Stream::Stdout, Stream::Stderr] {
            for bytes in outputs.rest(which) {
                if !put(&mut self.outbox, &mut self.output_left, which, bytes) {
                    break;
                }
                self.send().await;
            }
        }
    }

    /// Whether the caller has listened until now.
    pub fn reaches(&self) -> bool {
        self.reachable
    }

    /// Sends a frame, and says no more once the caller does not listen.
    pub async fn say(&mut self, frame: &Frame) {
        self.outbox.put(frame);
        self.send().await;
    }

    async fn send(&mut self) {
        if self.reachable {
            let sent = timeout(LAST_WORDS_TIME, self.outbox.send_all(&self.stream)).await;
            self.reachable = matches!(sent, Ok(Ok(())));
        }
    }
}

/// Whether all of it was within the bound; what exceeds it is cut off.
fn put(outbox: &mut Outbox, left: &mut u64, which: Stream, mut bytes: Vec<u8>) -> bool {
    let room = usize::try_from(*left).unwrap_or(usize::MAX);
    let within = bytes.len() <= room;
    bytes.truncate(room);
    *left -= bytes.len() as u64;
    debug_assert!(bytes.len() <= CHUNK_BYTES, "one read is one frame");
    if !bytes.is_empty() {
        outbox.put(&Frame::Output(which, bytes));
    }
    within
}
