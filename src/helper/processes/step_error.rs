//! Runs operations of several steps, and states why a step was the last: an obstacle or an order to end.

use std::collections::BTreeMap;
use std::time::Duration;

use gatewren_wire::operations::{
    Command, KillReason, OperationEnd, OperationRefusal, Program, Stream,
};

use super::answers::to_its_end;
use super::commands::{OUT_OF_TIME, OutputCallback, read_on_host};
use crate::context::operation_context::OperationContext;
use crate::context::programs::find;

/// The most bytes of a program's stderr that are kept; the rest is dropped.
const COMPLAINT_BYTES: usize = 2048;

/// Why a step was the last.
#[derive(Debug)]
pub enum StepError {
    /// An obstacle.
    Refused(OperationRefusal),
    /// The caller, the timeout or the helper's own shutdown ended it.
    Killed(KillReason),
}

impl From<OperationRefusal> for StepError {
    fn from(refusal: OperationRefusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<KillReason> for StepError {
    fn from(why: KillReason) -> Self {
        Self::Killed(why)
    }
}

/// Converts the result of the last step to the operation's ending.
pub fn operation_end(done: Result<(), StepError>) -> Result<OperationEnd, OperationRefusal> {
    step_end(done.map(|()| OperationEnd::SUCCESS))
}

/// The same for a last step that has an ending of its own, such as a program's exit code.
pub fn step_end(done: Result<OperationEnd, StepError>) -> Result<OperationEnd, OperationRefusal> {
    match done {
        Ok(end) => Ok(end),
        Err(StepError::Killed(why)) => Ok(OperationEnd::Killed { why }),
        Err(StepError::Refused(refusal)) => Err(refusal),
    }
}

impl OperationContext<'_> {
    /// Runs a step that may wait for a disk on a blocking thread.
    pub async fn run_blocking<T: Send + 'static>(
        &mut self,
        step: impl FnOnce() -> Result<T, OperationRefusal> + Send + 'static,
    ) -> Result<T, StepError> {
        Ok(self.relay.wait(to_its_end(step)).await??)
    }

    /// Runs a change in a task of its own, so that it completes even if the caller disconnects or the call must end.
    pub async fn run_change(
        &mut self,
        change: impl Future<Output = Result<(), OperationRefusal>> + Send + 'static,
    ) -> Result<(), StepError> {
        match self.relay.wait(tokio::spawn(change)).await? {
            Ok(changed) => Ok(changed?),
            Err(cause) => {
                let message = format!("the operation was aborted: {cause}");
                Err(OperationRefusal::failed(message).into())
            }
        }
    }

    /// Runs a program and passes its stdout to `on_stdout`. All processes it starts end with the operation. Returns
    /// its exit code and its stderr.
    pub async fn run_program(
        &mut self,
        name: &'static str,
        args: Vec<String>,
        mut on_stdout: impl FnMut(&[u8]) + Send,
    ) -> Result<(i32, String), StepError> {
        let mut complaint = Vec::new();
        let mut on_output = |which: Stream, bytes: &[u8]| {
            match which {
                Stream::Stdout => on_stdout(bytes),
                Stream::Stderr => {
                    let room = COMPLAINT_BYTES.saturating_sub(complaint.len());
                    complaint.extend(bytes.iter().take(room));
                }
            }
            None
        };
        let step = ProgramStep {
            name,
            args,
            cwd: "/".to_owned(),
            env: BTreeMap::new(),
            time: Duration::MAX,
        };
        let code = self.run_step(step, &mut on_output).await?;
        Ok((code, String::from_utf8_lossy(&complaint).trim().to_owned()))
    }

    /// Like `run_program`, with its own directory, environment and timeout; `on_output` gets stdout and stderr. Returns
    /// the exit code.
    pub async fn run_step(
        &mut self,
        step: ProgramStep,
        on_output: OutputCallback<'_>,
    ) -> Result<i32, StepError> {
        let name = step.name;
        let program = find(name)?.to_string_lossy().into_owned();
        let command = Command {
            program: Program::Argv([program].into_iter().chain(step.args).collect()),
            user: None,
            cwd: Some(step.cwd),
            env: step.env,
        };
        match read_on_host(self, &command, on_output, step.time).await? {
            OperationEnd::Exited { code } => Ok(code),
            OUT_OF_TIME => {
                Err(OperationRefusal::failed(format!("{name} did not answer in time")).into())
            }
            OperationEnd::Killed { why } => Err(StepError::Killed(why)),
            other => Err(OperationRefusal::failed(format!(
                "{name} did not exit normally: {other}"
            ))
            .into()),
        }
    }
}

/// A program of the host, with its arguments and environment.
#[derive(Debug)]
pub struct ProgramStep {
    /// Such as `tar`.
    pub name: &'static str,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its working directory.
    pub cwd: String,
    /// Variables in addition to the usual ones. They do not appear in process lists.
    pub env: BTreeMap<String, String>,
    /// How long it may take. After that it is killed and the step is refused.
    pub time: Duration,
}
