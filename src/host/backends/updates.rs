//! Package updates on the host and in containers: available ones as apt reports them, upgrades, and history.

use std::time::Duration;

use tokio::task::spawn_blocking;

use crate::helper_client::{
    Capture, ContainerRef, FinishedOperation, HelperClient, Operation, OperationEnd,
    OperationLimits, UpdateOrder, UpdateRunOrder, UpdateScope,
};
use gatewren_base::config::Reach;

use super::access_filter::AccessFilter;
use super::backups::{Backups, BackupsView};
use super::error::{BackendError, ErrorKind};
use super::long_work::{CallJob, LongOperation, run_long};
use super::lxc::{Lxc, LxcView};
use super::records::zone_of;
use super::request::{answer, limits, operation_error};
use super::source::HostTree;
use super::update_applied::{UpdateApplied, sentence};
use super::update_check::{AptSimulation, UpdateCheck, UpdatePage};
use super::update_history::{OLDEST_FILE, UpdateHistory, update_runs};

/// The timeout for reading apt's lists, which takes a small host many seconds.
const QUESTION: Duration = Duration::from_mins(2);

/// The timeout for downloading lists.
const FETCHING: Duration = Duration::from_mins(20);

/// The timeout for downloading packages; the helper does not interrupt their installation.
const APPLYING: Duration = Duration::from_hours(24);

/// The maximum output of apt; its end reports what was done.
const OUTPUT_BYTES: u64 = 64 << 20;

/// How much of the output is kept.
const CAPTURE: Capture = Capture {
    head: 512 * 1024,
    tail: 1024 * 1024,
};

/// The maximum number of errors about lists in a result.
const MAX_PROBLEMS: usize = 10;

/// The exit code that reports a missing file.
const NO_SUCH_FILE: OperationEnd = OperationEnd::Exited { code: 3 };

/// apt on the host and in containers; queries need a view.
#[derive(Debug, Clone)]
pub struct Updates {
    helper: HelperClient,
    tree: HostTree,
}

/// The instances of apt that a caller may access.
#[derive(Debug)]
pub struct UpdatesView<'u> {
    updates: &'u Updates,
    pub(super) access: AccessFilter,
    pub(super) agent: &'u str,
    reference: &'u str,
    pub(super) lxc: LxcView,
    pub(super) backups: BackupsView,
}

/// The packages to upgrade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpgradeRequest {
    /// The container; the host if absent.
    pub container: Option<ContainerRef>,
    /// Which packages.
    pub scope: UpdateScope,
    /// Whether other packages may be removed for it.
    pub removals: bool,
}

impl Updates {
    /// Returns access through this helper.
    pub fn new(helper: HelperClient) -> Self {
        let tree = HostTree::of_this_machine();
        Self { helper, tree }
    }

    /// Whether the host has apt; its containers then may have it too.
    pub fn are_here() -> bool {
        HostTree::of_this_machine().has("usr/bin/apt-get")
    }

    /// Returns access for a caller; `reference` identifies the call in the helper's log.
    pub fn view_for<'u>(
        &'u self,
        reach: &Reach,
        agent: &'u str,
        reference: &'u str,
    ) -> UpdatesView<'u> {
        UpdatesView {
            updates: self,
            access: AccessFilter::of(reach),
            agent,
            reference,
            lxc: Lxc::new(self.helper.clone()).view_for(reach, reference),
            backups: Backups::new(self.helper.clone()).view_for(reach, reference),
        }
    }
}

impl UpdatesView<'_> {
    /// Returns a page of the available updates from apt's lists, downloaded first if `refresh` is set.
    ///
    /// # Errors
    /// When the owner does not allow the helper to query or download, and when apt fails.
    pub async fn check(
        &self,
        container: Option<&ContainerRef>,
        refresh: bool,
        page: &UpdatePage,
        job: Option<CallJob>,
    ) -> Result<UpdateCheck, BackendError> {
        if !refresh {
            return Ok(self.simulate(container, job).await?.page(page));
        }
        let refresh_problems = self.refresh(container, job).await?;
        let check = self.simulate(container, None).await?.page(page);
        Ok(UpdateCheck {
            refresh_problems,
            ..check
        })
    }

    /// Downloads the lists and returns apt's errors.
    pub(super) async fn refresh(
        &self,
        container: Option<&ContainerRef>,
        job: Option<CallJob>,
    ) -> Result<Vec<String>, BackendError> {
        let fetch = |container| Operation::UpdateRefresh { container };
        problems(&self.run(container, fetch, FETCHING, job).await?)
    }

    /// Returns all that apt would do.
    pub(super) async fn simulate(
        &self,
        container: Option<&ContainerRef>,
        job: Option<CallJob>,
    ) -> Result<AptSimulation, BackendError> {
        let check = |container| Operation::UpdateCheck { container };
        let output = answer(&self.run(container, check, QUESTION, job).await?)?;
        let tree = container.is_none().then(|| self.updates.tree.clone());
        let read = spawn_blocking(move || AptSimulation::parse(&output, tree.as_ref()));
        read.await.map_err(|cause| {
            BackendError::new(ErrorKind::Failed, format!("reading failed: {cause}"))
        })
    }

    /// Upgrades packages. Dropping the future does not stop the upgrade once there is a job.
    ///
    /// # Errors
    /// When the owner does not allow it, and when nothing was changed because apt did not start.
    pub async fn apply(
        &self,
        wanted: UpgradeRequest,
        job: Option<CallJob>,
    ) -> Result<UpdateApplied, BackendError> {
        let order = |container| {
            Operation::UpdateApply(UpdateOrder {
                container,
                scope: wanted.scope.clone(),
                removals: wanted.removals,
                agent: self.agent.to_owned(),
            })
        };
        let run = self.run(wanted.container.as_ref(), order, APPLYING, job);
        UpdateApplied::of(&run.await?)
    }

    /// Returns apt's runs, newest first: up to `limit` after the first `offset`.
    ///
    /// # Errors
    /// When the owner does not allow it.
    pub async fn history(
        &self,
        container: Option<&ContainerRef>,
        offset: usize,
        limit: usize,
    ) -> Result<UpdateHistory, BackendError> {
        let mut runs = Vec::new();
        let asked = container.map(|name| self.access.name(name));
        let zone = zone_of(&self.updates.helper, asked.as_ref(), self.reference).await;
        // One more than requested shows whether there are more.
        let enough = offset.saturating_add(limit).saturating_add(1);
        for file in 0..=OLDEST_FILE {
            let print = |container| Operation::UpdateHistory { container, file };
            let output = self.run(container, print, QUESTION, None).await?;
            if output.ending == NO_SUCH_FILE {
                // After a rotation the current file does not exist until the next run of apt.
                if file > 0 {
                    break;
                }
                continue;
            }
            runs.extend(update_runs(&answer(&output)?, &zone));
            if runs.len() >= enough {
                break;
            }
        }
        Ok(UpdateHistory::page(runs, offset, limit))
    }

    /// Runs the upgrade of several targets.
    pub(super) async fn run_order(
        &self,
        order: UpdateRunOrder,
        job: Option<CallJob>,
    ) -> Result<FinishedOperation, BackendError> {
        let long = LongOperation {
            operation: Operation::UpdateRun(order),
            limits: OperationLimits {
                output_bytes: OUTPUT_BYTES,
                ..limits(APPLYING)
            },
            capture: CAPTURE,
        };
        run_long(&self.updates.helper, long, job, self.reference).await
    }

    /// Runs an operation on the host, or on a container; an inaccessible one is queried under a
    /// name that no container has.
    async fn run(
        &self,
        container: Option<&ContainerRef>,
        operation: impl FnOnce(Option<ContainerRef>) -> Operation,
        time: Duration,
        job: Option<CallJob>,
    ) -> Result<FinishedOperation, BackendError> {
        if container.is_none() {
            self.access.host()?;
        }
        let query_name = container.map(|name| self.access.name(name));
        let long = LongOperation {
            operation: operation(query_name.clone()),
            limits: OperationLimits {
                output_bytes: OUTPUT_BYTES,
                ..limits(time)
            },
            capture: CAPTURE,
        };
        let mut done = run_long(&self.updates.helper, long, job, self.reference).await?;
        if let OperationEnd::Refused(refusal) = &mut done.ending
            && let (Some(name), Some(query_name)) = (container, &query_name)
        {
            refusal.message = refusal.message.replace(query_name.as_str(), name.as_str());
        }
        Ok(done)
    }
}

/// Returns apt's error messages of a refresh.
fn problems(fetched: &FinishedOperation) -> Result<Vec<String>, BackendError> {
    let stderr = fetched.stderr.text_lossy();
    let messages = stderr.lines().filter(|line| {
        let line = line.trim_start();
        line.starts_with("E:") || line.starts_with("W:") || line.starts_with("Err:")
    });
    let problems: Vec<String> = messages.take(MAX_PROBLEMS).map(sentence).collect();
    match &fetched.ending {
        OperationEnd::Exited { .. } if !problems.is_empty() => Ok(problems),
        ending => operation_error(ending, &stderr).map_or(Ok(problems), Err),
    }
}
