//! Relays a command's output to its caller, or to a job's log, until the command ends or must be killed.

use std::future::Future;
use std::pin::pin;
use std::time::{Duration, Instant};

use tokio::net::UnixStream;
use tokio::time::{sleep, timeout};

use gatewren_wire::operations::{AuditHead, Frame, KillReason, Operation, OperationEnd, Stream};

use super::hold::Hold;
use super::job_output_sink::JobOutputSink;
use super::outputs::{CHUNK_BYTES, CommandOutputs};
use super::send_buffer::SendBuffer;
use super::step_output::{StepOutput, captured};
use super::stop::{StopConditions, wait_for_disconnect};

/// How long a caller that does not read may delay the end of its own call. After that nothing more is sent.
const LAST_WORDS_TIME: Duration = Duration::from_secs(5);

/// How long a held operation waits for its release. After that it counts as cancelled by its caller, whose disk hangs.
const RELEASE_TIME: Duration = Duration::from_mins(1);

/// How long an operation that must not be interrupted may run. After that it counts as hung.
const UNINTERRUPTIBLE_TIME: Duration = Duration::from_hours(6);

/// The output channel of one call to its caller, or of one job to its log.
#[derive(Debug)]
pub struct OutputRelay {
    target: OutputTarget,
    output_left: u64,
    stop: StopConditions,
    /// Whether the operation must not be interrupted now.
    uninterruptible: bool,
    /// The name of the operation, for the log.
    operation: &'static str,
    /// Whether it runs a command that a client chose.
    is_clients_command: bool,
    /// The output of the programs that run now, if the helper reads it.
    capture: Option<StepOutput>,
}

/// The destination of the output.
#[derive(Debug)]
enum OutputTarget {
    Caller(Caller),
    Job(JobOutputSink),
}

/// A caller at the other end of a connection.
#[derive(Debug)]
struct Caller {
    stream: UnixStream,
    outbox: SendBuffer,
    reachable: bool,
    hold: Hold,
}

impl OutputRelay {
    /// Relays to the caller at `stream`, at most `output_bytes` of output.
    pub fn new(stream: UnixStream, output_bytes: u64, stop: StopConditions) -> Self {
        Self {
            target: OutputTarget::Caller(Caller {
                stream,
                outbox: SendBuffer::default(),
                reachable: true,
                hold: Hold::default(),
            }),
            output_left: output_bytes,
            stop,
            uninterruptible: false,
            operation: "",
            is_clients_command: false,
            capture: None,
        }
    }

    /// Relays a job's output, at most `output_bytes`.
    pub fn for_job(sink: JobOutputSink, output_bytes: u64, stop: StopConditions) -> Self {
        Self {
            target: OutputTarget::Job(sink),
            output_left: output_bytes,
            stop,
            uninterruptible: false,
            operation: "",
            is_clients_command: false,
            capture: None,
        }
    }

    /// Replaces the conditions that end the operation.
    pub fn set_stop(&mut self, stop: StopConditions) {
        self.stop = stop;
    }

    /// Sets the operation.
    #[must_use]
    pub fn with_operation(self, operation: &Operation) -> Self {
        Self {
            operation: operation.name(),
            is_clients_command: operation.is_command(),
            ..self
        }
    }

    /// Holds the operation until its caller releases it.
    pub fn hold(&mut self) {
        if let OutputTarget::Caller(caller) = &mut self.target {
            caller.hold = Hold::until_release();
        }
    }

    /// Waits until the caller releases the operation, if it is held. The time does not count towards its timeout.
    pub async fn released(&mut self) -> Result<(), KillReason> {
        let begun = Instant::now();
        let OutputTarget::Caller(caller) = &mut self.target else {
            return Ok(());
        };
        let released = caller.hold.released(&caller.stream);
        tokio::select! {
            biased;
            is_released = released => if !is_released {
                return Err(KillReason::Cancelled);
            },
            why = self.stop.wait_for_reason(sleep(RELEASE_TIME)) => return Err(why),
        }
        self.stop.extend(begun.elapsed());
        Ok(())
    }

    /// Returns the head of the audit at the release; `None` if the operation was not held, or not released.
    pub fn audit_at_release(&self) -> Option<&AuditHead> {
        match &self.target {
            OutputTarget::Caller(caller) => caller.hold.audit(),
            OutputTarget::Job(_) => None,
        }
    }

    /// Returns whether the operation runs a command that a client chose.
    pub fn is_clients_command(&self) -> bool {
        self.is_clients_command
    }

    /// Returns the name of the operation, for the log.
    pub fn operation(&self) -> &'static str {
        self.operation
    }

    /// Sets whether the operation must not be interrupted: while set, a disconnect, the timeout and the helper's
    /// shutdown do not end it.
    pub fn set_uninterruptible(&mut self, uninterruptible: bool) {
        self.uninterruptible = uninterruptible;
    }

    /// Captures the output of the programs that run from now on. The caller gets it as stderr.
    pub fn begin_capture(&mut self) {
        self.capture = Some(StepOutput::default());
    }

    /// Ends the capture and returns all captured output.
    pub fn end_capture(&mut self) -> StepOutput {
        self.capture.take().unwrap_or_default()
    }

    /// Waits for a future without output, unless the call ends first.
    pub async fn wait<T>(&mut self, something: impl Future<Output = T>) -> Result<T, KillReason> {
        if self.uninterruptible {
            return Ok(something.await);
        }
        let cancelled = async {
            match &mut self.target {
                OutputTarget::Caller(Caller { stream, hold, .. }) => {
                    // A release is no disconnect.
                    if hold.released(stream).await {
                        wait_for_disconnect(stream).await;
                    }
                }
                OutputTarget::Job(sink) => sink.cancelled().await,
            }
        };
        tokio::select! {
            // A caller that closed its half of the connection still gets a result that is ready.
            biased;
            done = something => Ok(done),
            why = self.stop.wait_for_reason(cancelled) => Err(why),
        }
    }

    /// Relays output until `ended`, or until there is a reason to kill. Output that is then still in the pipes is
    /// left to [`Self::drain`], as a background child may hold the pipes open forever.
    pub async fn relay_until(
        &mut self,
        outputs: &mut CommandOutputs,
        ended: impl Future<Output = OperationEnd>,
    ) -> OperationEnd {
        if self.uninterruptible {
            return self.relay_uninterruptible(outputs, ended).await;
        }
        let Self {
            target,
            output_left,
            stop,
            capture,
            ..
        } = self;
        let limits = RelayLimits {
            stop,
            output_left,
            capture,
        };
        match target {
            OutputTarget::Caller(caller) => caller.relay_until(outputs, ended, limits).await,
            OutputTarget::Job(sink) => relay_job_output(sink, outputs, ended, limits).await,
        }
    }

    async fn relay_uninterruptible(
        &mut self,
        outputs: &mut CommandOutputs,
        ended: impl Future<Output = OperationEnd>,
    ) -> OperationEnd {
        let mut ended = pin!(ended);
        let mut time_up = pin!(sleep(UNINTERRUPTIBLE_TIME));
        loop {
            tokio::select! {
                biased;
                ending = &mut ended => return ending,
                () = &mut time_up => return OperationEnd::Killed { why: KillReason::Timeout },
                (which, mut bytes) = outputs.next() => {
                    // Output over the limit is still read and discarded; otherwise the command would block forever.
                    cut(&mut self.output_left, &mut bytes);
                    if !bytes.is_empty() {
                        let which = captured(&mut self.capture, which, &bytes);
                        self.send_frame(&Frame::Output(which, bytes)).await;
                    }
                }
            }
        }
    }

    /// Sends what is still in the pipes, once nothing writes to them any more.
    pub async fn drain(&mut self, outputs: &mut CommandOutputs) {
        for which in [Stream::Stdout, Stream::Stderr] {
            for mut bytes in outputs.rest(which) {
                let within = cut(&mut self.output_left, &mut bytes);
                if !bytes.is_empty() {
                    let which = captured(&mut self.capture, which, &bytes);
                    self.send_frame(&Frame::Output(which, bytes)).await;
                }
                if !within {
                    break;
                }
            }
        }
    }

    /// Returns whether the caller was still connected at the last send.
    pub fn is_reachable(&self) -> bool {
        match &self.target {
            OutputTarget::Caller(caller) => caller.reachable,
            OutputTarget::Job(_) => true,
        }
    }

    /// Returns whether a caller receives the output, directly or in addition to the log.
    pub fn has_listener(&self) -> bool {
        match &self.target {
            OutputTarget::Caller(caller) => caller.reachable,
            OutputTarget::Job(sink) => sink.has_listener(),
        }
    }

    /// Sends bytes as standard output.
    pub async fn write_stdout(&mut self, bytes: Vec<u8>) {
        let which = captured(&mut self.capture, Stream::Stdout, &bytes);
        self.send_frame(&Frame::Output(which, bytes)).await;
    }

    /// Sends a frame. Does nothing once the caller has disconnected.
    pub async fn send_frame(&mut self, frame: &Frame) {
        match &mut self.target {
            OutputTarget::Caller(caller) => {
                caller.outbox.put(frame);
                caller.send().await;
            }
            OutputTarget::Job(sink) => {
                if let Frame::Output(which, bytes) = frame {
                    sink.put(*which, bytes.clone()).await;
                }
            }
        }
    }
}

/// The conditions that end a command with relayed output, and the limits of its stored output.
struct RelayLimits<'r> {
    stop: &'r mut StopConditions,
    output_left: &'r mut u64,
    capture: &'r mut Option<StepOutput>,
}

impl Caller {
    async fn relay_until(
        &mut self,
        outputs: &mut CommandOutputs,
        ended: impl Future<Output = OperationEnd>,
        limits: RelayLimits<'_>,
    ) -> OperationEnd {
        let RelayLimits {
            stop,
            output_left,
            capture,
        } = limits;
        let mut ended = pin!(ended);
        let stream = &self.stream;
        let mut reason = pin!(stop.wait_for_reason(wait_for_disconnect(stream)));
        loop {
            tokio::select! {
                biased;
                why = &mut reason => return OperationEnd::Killed { why },
                ending = &mut ended => return ending,
                sent = self.outbox.send_some(stream), if !self.outbox.is_empty() => {
                    if sent.is_err() {
                        self.reachable = false;
                        return OperationEnd::Killed { why: KillReason::Cancelled };
                    }
                }
                (which, mut bytes) = outputs.next(), if self.outbox.is_empty() => {
                    let within = cut(output_left, &mut bytes);
                    if !bytes.is_empty() {
                        let which = captured(capture, which, &bytes);
                        self.outbox.put(&Frame::Output(which, bytes));
                    }
                    if !within {
                        return OperationEnd::Killed { why: KillReason::Output };
                    }
                }
            }
        }
    }

    async fn send(&mut self) {
        if self.reachable {
            let sent = timeout(LAST_WORDS_TIME, self.outbox.send_all(&self.stream)).await;
            self.reachable = matches!(sent, Ok(Ok(())));
        }
    }
}

/// Relays the output of a job.
async fn relay_job_output(
    sink: &mut JobOutputSink,
    outputs: &mut CommandOutputs,
    ended: impl Future<Output = OperationEnd>,
    limits: RelayLimits<'_>,
) -> OperationEnd {
    let RelayLimits {
        stop,
        output_left,
        capture,
    } = limits;
    let mut ended = pin!(ended);
    let mut reason = pin!(stop.wait_for_reason(sink.cancelled()));
    loop {
        tokio::select! {
            biased;
            why = &mut reason => return OperationEnd::Killed { why },
            ending = &mut ended => return ending,
            (which, mut bytes) = outputs.next() => {
                let within = cut(output_left, &mut bytes);
                let which = captured(capture, which, &bytes);
                sink.put(which, bytes).await;
                if !within {
                    return OperationEnd::Killed { why: KillReason::Output };
                }
            }
        }
    }
}

/// Truncates `bytes` to the limit; returns whether all of it was within the limit.
fn cut(left: &mut u64, bytes: &mut Vec<u8>) -> bool {
    let room = usize::try_from(*left).unwrap_or(usize::MAX);
    let within = bytes.len() <= room;
    bytes.truncate(room);
    *left -= bytes.len() as u64;
    debug_assert!(bytes.len() <= CHUNK_BYTES, "one read is one frame");
    within
}
