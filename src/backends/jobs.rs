//! Jobs: what the helper goes on with when the call that began it has been answered.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use crate::config::Reach;
use crate::helper_client::{ContainerName, Helper, HelperError, Job, JobId, Limits, Operation};

use super::{
    ask::{ask, limits, obstacle},
    error::{BackendError, ErrorKind},
    job_ends::JobEnds,
    job_piece::{JobOutput, MOST_BYTES, PIECE, piece},
    job_standing::{JobStanding, JobStandings, RUNNING, standing},
    keep::begin,
    shell::{ShellCall, split},
    threshold::{Threshold, told},
};

/// How long a question about jobs may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A job that ends within this is answered as one that has ended.
const QUICK: Duration = Duration::from_millis(500);

/// How long a job may take to end once it is told to: its processes are killed, and a disk may be slow.
const END_TIME: Duration = Duration::from_mins(1);

/// Jobs, through the helper.
#[derive(Debug, Clone)]
pub struct Jobs {
    helper: Helper,
    stop: watch::Receiver<bool>,
}

/// The jobs of one agent, as far as they are within its reach, or everybody's.
#[derive(Debug)]
pub struct JobsView<'j> {
    jobs: &'j Jobs,
    threshold: Threshold,
    /// Everybody's where there is none.
    owner: Option<&'j str>,
    reference: &'j str,
}

impl Jobs {
    /// Over this helper. When `stop` turns true, nobody waits for a job any more.
    pub fn new(helper: Helper, stop: watch::Receiver<bool>) -> Self {
        Self { helper, stop }
    }

    /// The ends of anybody's that nobody listened to.
    ///
    /// # Errors
    /// When the helper does not answer.
    pub async fn ends(&self) -> Result<JobEnds, HelperError> {
        JobEnds::of(&self.helper).await
    }

    /// Those of this agent; `reference` names the call in the helper's log.
    pub fn of<'j>(&'j self, owner: &'j str, reach: &Reach, reference: &'j str) -> JobsView<'j> {
        JobsView {
            jobs: self,
            threshold: Threshold::of(reach),
            owner: Some(owner),
            reference,
        }
    }

    /// Everybody's, for the owner of the box.
    pub fn of_everybody<'j>(&'j self, reference: &'j str) -> JobsView<'j> {
        JobsView {
            jobs: self,
            threshold: Threshold::of(&Reach::everything()),
            owner: None,
            reference,
        }
    }
}

impl JobsView<'_> {
    /// Begins a command on the host, or in a container, as a job.
    ///
    /// # Errors
    /// When it may not be begun, or cannot; a command that fails is a job that has failed.
    pub async fn start(
        &self,
        tool: &str,
        container: Option<&ContainerName>,
        call: ShellCall,
    ) -> Result<JobStanding, BackendError> {
        let (command, limits) = split(call);
        let Some(name) = container else {
            self.threshold.host()?;
            let operation = Operation::HostCommand { command };
            return self.begin(tool, operation, limits).await;
        };
        let asked = self.threshold.name(name);
        let operation = Operation::ContainerCommand {
            container: asked.clone(),
            command,
        };
        told(name, &asked, self.begin(tool, operation, limits).await)
    }

    async fn begin(
        &self,
        tool: &str,
        operation: Operation,
        limits: Limits,
    ) -> Result<JobStanding, BackendError> {
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

    /// Every one.
    ///
    /// # Errors
    /// When the helper does not answer.
    pub async fn all(&self) -> Result<JobStandings, BackendError> {
        let jobs = self.look(None).await?;
        Ok(JobStandings {
            jobs: jobs.into_iter().map(standing).collect(),
        })
    }

    /// Every one, with the agent whose it is.
    ///
    /// # Errors
    /// When the helper does not answer.
    pub async fn all_with_owners(&self) -> Result<Vec<(String, JobStanding)>, BackendError> {
        let jobs = self.look(None).await?.into_iter();
        Ok(jobs.map(|job| (job.owner.clone(), standing(job))).collect())
    }

    /// One.
    ///
    /// # Errors
    /// When this agent has none of this id.
    pub async fn one(&self, id: &JobId) -> Result<JobStanding, BackendError> {
        let found = self.look(Some(id)).await?.pop();
        found.map(standing).ok_or_else(|| no_such_job(id))
    }

    /// One when it has ended, or as it stands after so long.
    ///
    /// # Errors
    /// When this agent has none of this id.
    pub async fn wait(&self, id: &JobId, time: Duration) -> Result<JobStanding, BackendError> {
        let standing = self.one(id).await?;
        if standing.state != RUNNING {
            return Ok(standing);
        }
        let operation = Operation::JobWait {
            owner: self.owner.map(str::to_owned),
            job: id.clone(),
        };
        let ended = ask(&self.jobs.helper, operation, time, self.reference);
        tokio::select! {
            // How it stands then is asked for below.
            _ = timeout(time, ended) => {}
            () = self.stopped() => {}
        }
        self.one(id).await
    }

    /// A piece of what one has printed, of at most so many bytes; the end of it when no offset is named.
    ///
    /// # Errors
    /// When this agent has none of this id, or the helper cannot read what it has kept.
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
        if let Some(obstacle) = obstacle(&finished.ending, &finished.stderr.text_lossy()) {
            return Err(about_jobs(obstacle));
        }
        piece(asked, offset.is_none(), &finished.stdout.head).ok_or_else(not_understood)
    }

    /// Ends one, with everything that it has started; how it has ended. One that had ended before stays as it is.
    ///
    /// # Errors
    /// When this agent has none of this id.
    pub async fn cancel(&self, id: &JobId) -> Result<JobStanding, BackendError> {
        self.one(id).await?;
        let operation = Operation::JobCancel {
            owner: self.owner.map(str::to_owned),
            job: id.clone(),
        };
        let said = ask(&self.jobs.helper, operation, END_TIME, self.reference).await;
        let ended = jobs(&said.map_err(about_jobs)?)?.pop();
        ended.map(standing).ok_or_else(not_understood)
    }

    async fn look(&self, id: Option<&JobId>) -> Result<Vec<Job>, BackendError> {
        let operation = Operation::JobList {
            owner: self.owner.map(str::to_owned),
            job: id.cloned(),
        };
        let said = ask(&self.jobs.helper, operation, PATIENCE, self.reference).await;
        let mut jobs = jobs(&said.map_err(about_jobs)?)?;
        jobs.retain(|job| match &job.container {
            Some(container) => self.threshold.shows(container),
            None => self.threshold.host().is_ok(),
        });
        Ok(jobs)
    }

    async fn stopped(&self) {
        let _ = self.jobs.stop.clone().wait_for(|stop| *stop).await;
    }
}

fn jobs(said: &str) -> Result<Vec<Job>, BackendError> {
    let jobs = said.lines().map(serde_json::from_str);
    jobs.collect::<Result<_, _>>().map_err(|cause| {
        tracing::error!(%cause, "the helper's jobs are not understood");
        not_understood()
    })
}

fn not_understood() -> BackendError {
    BackendError::new(
        ErrorKind::Failed,
        "the helper's answer is not understood; ask the owner to restart gatewren and its helper, they must be of \
         the same version",
    )
}

fn no_such_job(id: &JobId) -> BackendError {
    about_jobs(BackendError::new(
        ErrorKind::NotFound,
        format!("there is no job {id}; job_list names those that there are"),
    ))
}

/// What is not found here is no container.
fn about_jobs(error: BackendError) -> BackendError {
    BackendError {
        hint: error.hint.or_else(|| {
            let old = "Jobs that have ended are kept until there are many newer ones.";
            (error.kind == ErrorKind::NotFound).then(|| old.to_owned())
        }),
        ..error
    }
}
