//! Runs commands on the host and in containers.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::watch;

use crate::helper_client::{
    Command, ContainerRef, HelperClient, Operation, OperationLimits, Program, finish,
};
use gatewren_base::config::Reach;

use super::access_filter::{AccessFilter, unmask_error};
use super::error::BackendError;
use super::lxc::{ContainerState, ContainerStatus};
use super::outcome::ShellOutcome;
use super::request::ask;
use super::stored_outputs::{KEPT, StoredOutputs};

/// The maximum output of a command; beyond it the command is killed.
const OUTPUT_BYTES: u64 = 2 << 30;

/// The maximum number of concurrent processes of one command.
const PROCESSES: u32 = 4096;

/// How long a command may still run when the server stops.
const GRACE: Duration = Duration::from_secs(5);

/// How long the state of a container is asked for after its command was killed.
const STATE_TIME: Duration = Duration::from_secs(10);

/// The note on a command whose container stopped.
const CONTAINER_STOPPED: &str = "The container stopped while the command ran, which killed the command. \
                                 container_start starts it.";

/// A command to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellCall {
    /// A shell command line, or a program with its arguments.
    pub command: Program,
    /// Its timeout; the helper has its own upper limit.
    pub timeout: Duration,
    /// The user to run as; root when absent.
    pub user: Option<String>,
    /// The directory to start in; the user's home when absent.
    pub cwd: Option<String>,
    /// Environment variables in addition to PATH, HOME, LANG and TERM.
    pub env: BTreeMap<String, String>,
    /// Whether the call was judged as one on the host, as it must be for a container with the rights of the host's root.
    pub on_host: bool,
}

/// Runs commands through the helper; access is checked by a view.
#[derive(Debug, Clone)]
pub struct Shell {
    helper: HelperClient,
    stop: watch::Receiver<bool>,
    outputs: StoredOutputs,
}

/// Runs commands where a caller has access. Dropping the future of a call kills the command.
#[derive(Debug)]
pub struct ShellView<'s> {
    shell: &'s Shell,
    access: AccessFilter,
    reference: &'s str,
}

impl Shell {
    /// Returns access through this helper. When `stop` becomes true, a command has [`GRACE`] to
    /// finish. Then it is killed, and the result has the output until then.
    pub fn new(helper: HelperClient, stop: watch::Receiver<bool>) -> Self {
        let outputs = StoredOutputs::default();
        Self {
            helper,
            stop,
            outputs,
        }
    }

    /// Returns the outputs of commands beyond what their results show.
    pub fn outputs(&self) -> &StoredOutputs {
        &self.outputs
    }

    /// Returns access for a caller; `reference` identifies the call in the helper's log.
    pub fn view_for<'s>(&'s self, reach: &Reach, reference: &'s str) -> ShellView<'s> {
        ShellView {
            shell: self,
            access: AccessFilter::of(reach),
            reference,
        }
    }
}

impl ShellView<'_> {
    /// Runs a command on the host.
    ///
    /// # Errors
    /// When it could not be started; a failed command is a result, not an error.
    pub async fn host(&self, call: ShellCall) -> Result<ShellOutcome, BackendError> {
        self.access.host()?;
        let (command, limits) = split(call);
        self.run(Operation::HostCommand { command }, limits).await
    }

    /// Runs a command inside a running container.
    ///
    /// # Errors
    /// As for the host, and when the container is not running.
    pub async fn container(
        &self,
        container: &ContainerRef,
        call: ShellCall,
    ) -> Result<ShellOutcome, BackendError> {
        let on_host = call.on_host;
        let (command, limits) = split(call);
        let asked = self.access.name(container);
        let operation = Operation::ContainerCommand {
            container: asked.clone(),
            command,
            on_host,
        };
        let outcome = self.run(operation, limits).await;
        let mut outcome = unmask_error(container, &asked, outcome)?;
        let is_killed = outcome.signal.is_some() || outcome.killed_because.is_some();
        if is_killed && !outcome.timed_out && self.is_stopped(asked).await {
            outcome.note = outcome.note.or(Some(CONTAINER_STOPPED));
        }
        Ok(outcome)
    }

    /// Returns whether a container is known to be stopped.
    async fn is_stopped(&self, container: ContainerRef) -> bool {
        let operation = Operation::ContainerInfo { container };
        let info = ask(&self.shell.helper, operation, STATE_TIME, self.reference).await;
        let status = info.ok().and_then(|text| ContainerStatus::parse(&text));
        status.is_some_and(|status| {
            matches!(
                status.state,
                ContainerState::Stopped | ContainerState::Stopping
            )
        })
    }

    async fn run(
        &self,
        operation: Operation,
        limits: OperationLimits,
    ) -> Result<ShellOutcome, BackendError> {
        let helper = &self.shell.helper;
        let running = helper.start(operation, limits, self.reference).await?;
        ShellOutcome::of(finish(running, limits, KEPT, self.wait_for_stop()).await?)
    }

    async fn wait_for_stop(&self) {
        let _ = self.shell.stop.clone().wait_for(|stop| *stop).await;
        tokio::time::sleep(GRACE).await;
    }
}

/// Returns the command of a call and its limits.
pub fn split(call: ShellCall) -> (Command, OperationLimits) {
    let command = Command {
        program: call.command,
        user: call.user,
        cwd: call.cwd,
        env: call.env,
    };
    let limits = OperationLimits {
        timeout_ms: u64::try_from(call.timeout.as_millis()).unwrap_or(u64::MAX),
        output_bytes: OUTPUT_BYTES,
        processes: PROCESSES,
    };
    (command, limits)
}
