//! Jobs: work that the helper continues after the call that started it has returned.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use crate::helper_client::{
    ContainerRef, HelperClient, HelperError, Job, JobId, Operation, OperationLimits,
};
use gatewren_base::config::Reach;

use super::access_filter::{AccessFilter, unmask_error};
use super::error::{BackendError, ErrorKind};
use super::job_ends::JobEnds;
use super::job_piece::{JobOutput, MOST_BYTES, PIECE, parse_piece};
use super::job_status::{JobStatus, JobStatusList, RUNNING};
use super::long_work::begin;
use super::request::{ask, limits, operation_error};
use super::shell::{ShellCall, split};

/// The timeout of queries about jobs.
const PATIENCE: Duration = Duration::from_secs(30);

/// A job that ends within this time is returned as already ended.
const QUICK: Duration = Duration::from_millis(500);

/// How long a cancelled job may take to end: its processes are killed, and a disk may be slow.
const END_TIME: Duration = Duration::from_mins(1);

/// Access to jobs through the helper.
#[derive(Debug, Clone)]
pub struct Jobs {
    helper: HelperClient,
    stop: watch::Receiver<bool>,
}

/// The jobs of one agent that are within its reach, or all jobs.
#[derive(Debug)]
pub struct JobsView<'j> {
    jobs: &'j Jobs,
    access: AccessFilter,
    /// `None` for the jobs of all agents.
    owner: Option<&'j str>,
    reference: &'j str,
}

impl Jobs {
    /// Returns access through this helper. When `stop` becomes true, no call waits for a job any
    /// longer.
    pub fn new(helper: HelperClient, stop: watch::Receiver<bool>) -> Self {
        Self { helper, stop }
    }

    /// Subscribes to the ends of jobs of all agents that no call waited for.
    ///
    /// # Errors
    /// When the helper does not answer.
    pub async fn ends(&self) -> Result<JobEnds, HelperError> {
        JobEnds::of(&self.helper).await
    }

    /// Returns the jobs of this agent; `reference` identifies the call in the helper's log.
    pub fn of<'j>(&'j self, owner: &'j str, reach: &Reach, reference: &'j str) -> JobsView<'j> {
        JobsView {
            jobs: self,
            access: AccessFilter::of(reach),
            owner: Some(owner),
            reference,
        }
    }

    /// Returns the jobs of all agents, for the owner of the host.
    pub fn of_all_agents<'j>(&'j self, reference: &'j str) -> JobsView<'j> {
        JobsView {
            jobs: self,
            access: AccessFilter::of(&Reach::everything()),
            owner: None,
            reference,
        }
    }
}

impl JobsView<'_> {
    /// Starts a command on the host or in a container as a job.
    ///
    /// # Errors
    /// When it is not allowed or cannot be started. A command that fails is a failed job, not an
    /// error.
    pub async fn start(
        &self,
        tool: &str,
        container: Option<&ContainerRef>,
        call: ShellCall,
    ) -> Result<JobStatus, BackendError> {
        let on_host = call.on_host;
        let (command, limits) = split(call);
        let Some(name) = container else {
            self.access.host()?;
            let operation = Operation::HostCommand { command };
            return self.begin(tool, operation, limits).await;
        };
        let asked = self.access.name(name);
        let operation = Operation::ContainerCommand {
            container: asked.clone(),
            command,
            on_host,
        };
        unmask_error(name, &asked, self.begin(tool, operation, limits).await)
    }

    async fn begin(
        &self,
        tool: &str,
        operation: Operation,
        limits: OperationLimits,
    ) -> Result<JobStatus, BackendError> {
        let id = JobId::random();
        let start = Operation::JobStart {
            job: id.clone(),
            owner: self.owner.unwrap_or_default().to_owned(),
            tool: tool.to_owned(),
            detached: true,
            operation: Box::new(operation),
        };
        begin(&self.jobs.helper, start, limits, self.reference).await?;
        self.wait(&id, QUICK).await
    }

    /// Returns all jobs.
    ///
    /// # Errors
    /// When the helper does not answer.
    pub async fn all(&self) -> Result<JobStatusList, BackendError> {
        let jobs = self.look(None).await?;
        Ok(JobStatusList {
            jobs: jobs.into_iter().map(JobStatus::from).collect(),
        })
    }

    /// Returns one job.
    ///
    /// # Errors
    /// When this agent has no job with this id.
    pub async fn one(&self, id: &JobId) -> Result<JobStatus, BackendError> {
        let found = self.look(Some(id)).await?.pop();
        found.map(JobStatus::from).ok_or_else(|| no_such_job(id))
    }

    /// Waits until a job ends or the time is over, and returns its state.
    ///
    /// # Errors
    /// When this agent has no job with this id.
    pub async fn wait(&self, id: &JobId, time: Duration) -> Result<JobStatus, BackendError> {
        let status = self.one(id).await?;
        if status.state != RUNNING {
            return Ok(status);
        }
        let operation = Operation::JobWait {
            owner: self.owner.map(str::to_owned),
            job: id.clone(),
        };
        let ended = ask(&self.jobs.helper, operation, time, self.reference);
        tokio::select! {
            // Its state is queried below.
            _ = timeout(time, ended) => {}
            () = self.wait_for_stop() => {}
        }
        self.one(id).await
    }

    /// Returns a part of a job's output, of at most this many bytes; without an offset, the end of
    /// the output.
    ///
    /// # Errors
    /// When this agent has no job with this id, or the helper cannot read the stored output.
    pub async fn output(
        &self,
        id: &JobId,
        offset: Option<u64>,
        bytes: u32,
    ) -> Result<JobOutput, BackendError> {
        let job = self.look(Some(id)).await?.pop();
        let job = job.ok_or_else(|| no_such_job(id))?;
        let bytes = bytes.min(MOST_BYTES);
        let asked = offset.unwrap_or_else(|| job.output_bytes.saturating_sub(bytes.into()));
        let operation = Operation::JobOutput {
            owner: self.owner.map(str::to_owned),
            job: id.clone(),
            offset: asked,
            bytes,
        };
        let (helper, limits) = (&self.jobs.helper, limits(PATIENCE));
        let finished = helper.run(operation, limits, self.reference, PIECE).await?;
        if let Some(operation_error) =
            operation_error(&finished.ending, &finished.stderr.text_lossy())
        {
            return Err(add_job_hint(operation_error));
        }
        parse_piece(asked, offset.is_none(), &finished.stdout.head).ok_or_else(unreadable_answer)
    }

    /// Kills a job with everything that it has started, and returns its final state. A job that has
    /// already ended is unchanged.
    ///
    /// # Errors
    /// When this agent has no job with this id.
    pub async fn cancel(&self, id: &JobId) -> Result<JobStatus, BackendError> {
        self.one(id).await?;
        let operation = Operation::JobCancel {
            owner: self.owner.map(str::to_owned),
            job: id.clone(),
        };
        let answer = ask(&self.jobs.helper, operation, END_TIME, self.reference).await;
        let ended = parse_jobs(&answer.map_err(add_job_hint)?)?.pop();
        ended.map(JobStatus::from).ok_or_else(unreadable_answer)
    }

    async fn look(&self, id: Option<&JobId>) -> Result<Vec<Job>, BackendError> {
        let operation = Operation::JobList {
            owner: self.owner.map(str::to_owned),
            job: id.cloned(),
        };
        let answer = ask(&self.jobs.helper, operation, PATIENCE, self.reference).await;
        let mut jobs = parse_jobs(&answer.map_err(add_job_hint)?)?;
        jobs.retain(|job| match &job.container {
            Some(container) => self.access.shows(container),
            None => self.access.host().is_ok(),
        });
        Ok(jobs)
    }

    async fn wait_for_stop(&self) {
        let _ = self.jobs.stop.clone().wait_for(|stop| *stop).await;
    }
}

fn parse_jobs(answer: &str) -> Result<Vec<Job>, BackendError> {
    let jobs = answer.lines().map(serde_json::from_str);
    jobs.collect::<Result<_, _>>().map_err(|cause| {
        tracing::error!(%cause, "the helper's list of jobs is invalid");
        unreadable_answer()
    })
}

fn unreadable_answer() -> BackendError {
    BackendError::new(
        ErrorKind::Failed,
        "the helper's answer is invalid; ask the owner to restart gatewren and its helper, because they must have \
         the same version",
    )
}

fn no_such_job(id: &JobId) -> BackendError {
    add_job_hint(BackendError::new(
        ErrorKind::NotFound,
        format!("there is no job {id}; job_list shows those that exist"),
    ))
}

/// Adds a hint for jobs: here, "not found" never means a container.
fn add_job_hint(error: BackendError) -> BackendError {
    BackendError {
        hint: error.hint.or_else(|| {
            let old = "Finished jobs are removed when there are many newer ones.";
            (error.kind == ErrorKind::NotFound).then(|| old.to_owned())
        }),
        ..error
    }
}
