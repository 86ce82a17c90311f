//! Runs operations of several steps, and states why a step was the last: an obstacle or an order to end.

use std::collections::BTreeMap;
use std::time::Duration;

use gatewren_wire::operations::{Command, Ending, KillReason, Program, Stream};

use super::answers::to_its_end;
use super::commands::{Hear, OUT_OF_TIME, heard_on_host};
use crate::context::helper_context::House;
use crate::context::output_relay::Pump;
use crate::context::programs::find;
use crate::context::refusal::Refusal;

/// The most bytes of a program's stderr that are kept; the rest is dropped.
const COMPLAINT_BYTES: usize = 2048;

/// Why a step was the last.
#[derive(Debug)]
pub enum Halt {
    /// An obstacle.
    Refused(Refusal),
    /// The caller, the timeout or the helper's own shutdown ended it.
    Killed(KillReason),
}

impl From<Refusal> for Halt {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Converts the result of the last step to the operation's ending.
pub fn ending(done: Result<(), Halt>) -> Result<Ending, Refusal> {
    match done {
        Ok(()) => Ok(Ending::Exited { code: 0 }),
        Err(Halt::Killed(why)) => Ok(Ending::Killed { why }),
        Err(Halt::Refused(refusal)) => Err(refusal),
    }
}

/// The context for the steps of one operation.
pub struct Work<'a> {
    /// The helper's shared context.
    pub house: &'a House,
    /// Signals that the operation has to end.
    pub pump: &'a mut Pump,
    /// The most processes of each program.
    pub processes: u32,
}

impl Work<'_> {
    /// Runs a step that may wait for a disk on a blocking thread.
    pub async fn aside<T: Send + 'static>(
        &mut self,
        step: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Halt> {
        let done = self.pump.wait(to_its_end(step)).await;
        done.map_err(Halt::Killed)?.map_err(Halt::Refused)
    }

    /// Runs a program and passes its stdout to `hear`. All processes it starts end with the operation. Returns its
    /// exit code and its stderr.
    pub async fn run(
        &mut self,
        (name, args): (&'static str, Vec<String>),
        mut hear: impl FnMut(&[u8]) + Send,
    ) -> Result<(i32, String), Halt> {
        let mut complaint = Vec::new();
        let mut heard = |which: Stream, bytes: &[u8]| {
            match which {
                Stream::Stdout => hear(bytes),
                Stream::Stderr => {
                    let room = COMPLAINT_BYTES.saturating_sub(complaint.len());
                    complaint.extend(bytes.iter().take(room));
                }
            }
            None
        };
        let step = Step {
            name,
            args,
            cwd: "/".to_owned(),
            env: BTreeMap::new(),
            time: Duration::MAX,
        };
        let code = self.step(step, &mut heard).await?;
        Ok((code, String::from_utf8_lossy(&complaint).trim().to_owned()))
    }

    /// Like `run`, with its own directory, environment and timeout; `hear` gets stdout and stderr. Returns the exit
    /// code.
    pub async fn step(&mut self, step: Step, hear: Hear<'_>) -> Result<i32, Halt> {
        let name = step.name;
        let program = find(name)?.to_string_lossy().into_owned();
        let command = Command {
            program: Program::Argv([program].into_iter().chain(step.args).collect()),
            user: None,
            cwd: Some(step.cwd),
            env: step.env,
        };
        let heard = (&command, (hear, step.time));
        let ended = heard_on_host(self.house, self.pump, heard, self.processes).await?;
        match ended {
            Ending::Exited { code } => Ok(code),
            OUT_OF_TIME => Err(Refusal::failed(format!("{name} did not answer in time")).into()),
            Ending::Killed { why } => Err(Halt::Killed(why)),
            other => Err(Refusal::failed(format!("{name} did not exit normally: {other}")).into()),
        }
    }
}

/// A program of the host, with its arguments and environment.
#[derive(Debug)]
pub struct Step {
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
