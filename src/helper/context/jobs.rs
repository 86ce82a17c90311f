//! The jobs of this host, on disk: the running ones, and as many of the ended ones as the limits allow.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tokio::sync::{mpsc, watch};

use gatewren_base::sys::files::{private_dir, read_bounded, write_private};
use gatewren_base::sys::{FileError, lock, now_ms};
use gatewren_wire::operations::{
    Frame, Job, JobId, KillReason, OperationEnd, OperationRefusal, RefusalCode,
};

use super::job_log::{JobLog, MOST_BYTES, saved_length};
use super::job_output_sink::{JobOutputSink, OutputCounters};

/// Concurrent jobs. One more is rejected as busy.
const MAX_RUNNING: usize = 32;

/// Concurrent jobs of one agent.
const MAX_RUNNING_OF_ONE: usize = 8;

/// The most ended jobs that are kept, for each agent and in all. For one more the oldest is removed.
const MAX_ENDED_OF_ONE: usize = 50;
const MAX_ENDED: usize = 200;

/// The most disk space of the output of ended jobs. For more the oldest are removed.
const MAX_ENDED_BYTES: u64 = 256 << 20;

/// The longest owner and tool of a job.
const NAME_BYTES: usize = 128;

/// The longest record of a job.
const RECORD_BYTES: usize = 16 * 1024;

/// The file with a job's record.
const RECORD: &str = "record.json";

/// How many frames are buffered for a listener that is slower than the job.
const LISTENER_FRAMES: usize = 8;

/// All jobs. Only this type decides which of them an owner may access.
#[derive(Debug)]
pub struct JobTable {
    directory: Option<PathBuf>,
    entries: Mutex<BTreeMap<JobId, JobEntry>>,
    /// Notified when a job has ended.
    end_notifier: watch::Sender<u64>,
}

#[derive(Debug)]
struct JobEntry {
    job: Job,
    printed: Arc<OutputCounters>,
    cancel: watch::Sender<bool>,
}

impl JobTable {
    /// Opens the jobs in a directory of the helper. Jobs that an earlier helper left running count as ended with it.
    /// Without a directory no job can start.
    pub fn open(directory: Option<PathBuf>) -> Self {
        let entries = directory.as_deref().map(load).unwrap_or_default();
        Self {
            directory,
            entries: Mutex::new(entries),
            end_notifier: watch::Sender::new(0),
        }
    }

    /// Records a new job, and removes old ones to make room. Returns the sink for its output and the receiver of its
    /// frames.
    pub fn begin(
        &self,
        job: Job,
    ) -> Result<(JobOutputSink, mpsc::Receiver<Frame>), OperationRefusal> {
        let Some(directory) = &self.directory else {
            return Err(OperationRefusal::failed(
                "this helper has no directory for jobs; set StateDirectory= in its unit, or start it with \
                 --state-dir",
            ));
        };
        if job.owner.len() > NAME_BYTES || job.tool.len() > NAME_BYTES {
            return Err(OperationRefusal::bad_command(
                "the job's owner or tool is too long",
            ));
        }
        let mut entries = lock(&self.entries);
        check_room(&entries, &job)?;
        for old in make_room(&mut entries, &job.owner) {
            self.remove(&old);
        }
        let own = directory.join(job.id.as_str());
        let kept = private_dir(&own).and_then(|()| write(&own, &job));
        kept.map_err(|e| OperationRefusal::failed(format!("the job cannot be saved: {e}")))?;
        let (printed, cancel) = (Arc::<OutputCounters>::default(), watch::Sender::new(false));
        let (listener, frames) = mpsc::channel(LISTENER_FRAMES);
        let sink = JobOutputSink::new(
            JobLog::new(own),
            Arc::clone(&printed),
            cancel.subscribe(),
            listener,
        );
        let entry = JobEntry {
            printed,
            cancel,
            job: job.clone(),
        };
        entries.insert(job.id, entry);
        Ok((sink, frames))
    }

    /// Records that a job has ended, how, and whether its caller listened.
    pub fn end(&self, id: &JobId, ending: OperationEnd, was_heard: bool) {
        if let Some(entry) = lock(&self.entries).get_mut(id) {
            entry.job = entry.now();
            entry.job.ending = Some(ending);
            entry.job.ended_ms = Some(now_ms());
            entry.job.heard = was_heard;
            let own = self.directory.as_deref().map(|d| d.join(id.as_str()));
            if let Some(Err(cause)) = own.map(|own| write(&own, &entry.job)) {
                tracing::error!(%cause, "the end of a job could not be saved");
            }
        }
        self.end_notifier.send_modify(|rung| *rung += 1);
    }

    /// Returns the jobs of an owner or of all, or the one with this id among them, newest first.
    pub fn list(&self, owner: Option<&str>, id: Option<&JobId>) -> Vec<Job> {
        let entries = lock(&self.entries);
        let found = entries.values().filter(|entry| {
            let own = owner.is_none_or(|owner| entry.job.owner == owner);
            own && id.is_none_or(|id| entry.job.id == *id)
        });
        let mut jobs: Vec<Job> = found.map(JobEntry::now).collect();
        jobs.sort_by(|a, b| (b.began_ms, &b.id).cmp(&(a.began_ms, &a.id)));
        jobs
    }

    /// Returns a job of an owner. Another owner's job counts as unknown.
    pub fn find(&self, owner: Option<&str>, id: &JobId) -> Result<Job, OperationRefusal> {
        let found = self.list(owner, Some(id)).pop();
        found.ok_or_else(|| no_such_job(id))
    }

    /// Cancels a job. No effect if it has ended.
    pub fn cancel(&self, id: &JobId) {
        if let Some(entry) = lock(&self.entries).get(id) {
            entry.cancel.send_replace(true);
        }
    }

    /// Removes a job that has ended.
    pub fn forget(&self, id: &JobId) {
        let mut entries = lock(&self.entries);
        if entries.get(id).is_some_and(|entry| !entry.runs()) {
            entries.remove(id);
            self.remove(id);
        }
    }

    fn remove(&self, id: &JobId) {
        if let Some(Err(cause)) = self.place(id).map(fs::remove_dir_all) {
            tracing::warn!(%cause, job = %id, "an old job could not be removed");
        }
    }

    /// Returns the directory of a job's output.
    pub fn place(&self, id: &JobId) -> Option<PathBuf> {
        Some(self.directory.as_ref()?.join(id.as_str()))
    }

    /// Subscribes to notifications that a job has ended.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.end_notifier.subscribe()
    }

    /// Returns how many jobs run.
    pub fn running(&self) -> usize {
        let entries = lock(&self.entries);
        entries.values().filter(|entry| entry.runs()).count()
    }

    /// Waits until none runs.
    pub async fn idle(&self) {
        let mut ended_jobs = self.subscribe();
        while self.running() > 0 && ended_jobs.changed().await.is_ok() {}
    }
}

impl JobEntry {
    fn runs(&self) -> bool {
        self.job.ending.is_none()
    }

    /// Returns the job with the current size of its output.
    fn now(&self) -> Job {
        let mut job = self.job.clone();
        if self.runs() {
            (job.output_bytes, job.lost_bytes) = self.printed.now();
        }
        job
    }
}

/// The refusal for an unknown job.
pub fn no_such_job(id: &JobId) -> OperationRefusal {
    let message = format!("there is no job {id}; job_list shows those that exist");
    OperationRefusal::new(RefusalCode::NoSuchJob, message)
}

fn check_room(entries: &BTreeMap<JobId, JobEntry>, job: &Job) -> Result<(), OperationRefusal> {
    if entries.contains_key(&job.id) {
        return Err(OperationRefusal::bad_command(
            "a job with this id already exists",
        ));
    }
    let running = || entries.values().filter(|entry| entry.runs());
    let own = running().filter(|entry| entry.job.owner == job.owner);
    if own.count() >= MAX_RUNNING_OF_ONE || running().count() >= MAX_RUNNING {
        let message = format!(
            "too many jobs are running: at most {MAX_RUNNING_OF_ONE} per agent and {MAX_RUNNING} in total; wait for \
             one (job_wait) or cancel one (job_cancel)"
        );
        return Err(OperationRefusal::new(RefusalCode::Busy, message));
    }
    Ok(())
}

/// Removes the oldest ended jobs until there is room for one more, and returns their ids.
fn make_room(entries: &mut BTreeMap<JobId, JobEntry>, owner: &str) -> Vec<JobId> {
    let mut ended: Vec<Job> = entries
        .values()
        .filter(|entry| !entry.runs())
        .map(|entry| entry.job.clone())
        .collect();
    ended.sort_by_key(|job| std::cmp::Reverse(job.ended_ms));
    let (mut all, mut own, mut bytes) = (0, 0, 0);
    let mut out = Vec::new();
    for job in ended {
        all += 1;
        own += usize::from(job.owner == owner);
        bytes += job.output_bytes.min(MOST_BYTES);
        let too_many = all >= MAX_ENDED || job.owner == owner && own >= MAX_ENDED_OF_ONE;
        if too_many || bytes > MAX_ENDED_BYTES {
            entries.remove(&job.id);
            out.push(job.id);
        }
    }
    out
}

/// Loads the jobs that an earlier helper left.
fn load(directory: &Path) -> BTreeMap<JobId, JobEntry> {
    let mut entries = BTreeMap::new();
    for place in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = place.file_name().into_string().unwrap_or_default();
        let Ok(id) = name.parse::<JobId>() else {
            continue;
        };
        let record = read_bounded(&place.path().join(RECORD), RECORD_BYTES).ok();
        let record = record.and_then(|bytes| serde_json::from_slice::<Job>(&bytes).ok());
        let Some(job) = record.filter(|job| job.id == id) else {
            let removed = fs::remove_dir_all(place.path());
            tracing::warn!(job = %id, ?removed, "removed a job without a record");
            continue;
        };
        let entry = JobEntry {
            job: mark_ended(&place.path(), job),
            printed: Arc::default(),
            cancel: watch::Sender::new(false),
        };
        entries.insert(id, entry);
    }
    entries
}

/// Marks a job that was still running as ended with its helper.
fn mark_ended(place: &Path, mut job: Job) -> Job {
    if job.ending.is_some() {
        return job;
    }
    let why = KillReason::Lost;
    job.ending = Some(OperationEnd::Killed { why });
    job.ended_ms = Some(now_ms());
    job.output_bytes = saved_length(place);
    if let Err(cause) = write(place, &job) {
        tracing::error!(%cause, "the end of a job could not be saved");
    }
    tracing::warn!(job = %job.id, owner = job.owner, "a job ended with the helper that ran it");
    job
}

fn write(place: &Path, job: &Job) -> Result<(), FileError> {
    // Plain strings and numbers always serialize.
    let record = serde_json::to_vec(job).unwrap_or_default();
    write_private(&place.join(RECORD), &record)
}

#[cfg(test)]
mod tests {
    use gatewren_base::sys::Scratch;
    use gatewren_wire::operations::Stream;

    use super::super::jobs::*;

    fn job(owner: &str) -> Job {
        Job {
            id: JobId::random(),
            owner: owner.into(),
            tool: "job_start".into(),
            reference: "r".into(),
            operation: "host_command".into(),
            container: None,
            command: None,
            began_ms: now_ms(),
            ended_ms: None,
            ending: None,
            heard: false,
            output_bytes: 0,
            lost_bytes: 0,
        }
    }

    fn jobs(scratch: &Scratch) -> JobTable {
        JobTable::open(Some(scratch.join("jobs")))
    }

    #[tokio::test]
    async fn a_job_is_there_for_its_owner_and_outlives_the_helper() {
        let scratch = Scratch::new();
        let first = jobs(&scratch);
        let (done, runs) = (job("a"), job("a"));
        let (mut sink, _frames) = first.begin(done.clone()).unwrap();
        sink.put(Stream::Stderr, b"hello".to_vec()).await;
        first.end(&done.id, OperationEnd::SUCCESS, true);
        let (mut sink, _frames) = first.begin(runs.clone()).unwrap();
        sink.put(Stream::Stdout, b"abc".to_vec()).await;
        assert_eq!(first.running(), 1);
        assert_eq!(first.find(Some("a"), &runs.id).unwrap().output_bytes, 3);
        let other = first.find(Some("b"), &runs.id);
        let never = first.find(Some("a"), &JobId::random());
        for none in [other, never] {
            assert_eq!(none.unwrap_err().code, RefusalCode::NoSuchJob);
        }

        // As if the helper had been killed.
        let second = jobs(&scratch);
        assert_eq!(second.running(), 0);
        assert_eq!(second.list(Some("b"), None), []);
        let kept = second.find(Some("a"), &done.id).unwrap();
        assert_eq!(
            (kept.ending, kept.output_bytes),
            (Some(OperationEnd::SUCCESS), 5)
        );
        second.forget(&done.id);
        assert!(second.find(None, &done.id).is_err());
        assert!(!scratch.join("jobs").join(done.id.as_str()).exists());
        let lost = second.find(None, &runs.id).unwrap();
        let why = KillReason::Lost;
        assert_eq!(lost.ending, Some(OperationEnd::Killed { why }));
        assert_eq!(lost.output_bytes, 3);
    }

    #[test]
    fn one_too_many_is_refused_and_the_oldest_that_ended_goes() {
        let scratch = Scratch::new();
        let jobs = jobs(&scratch);
        let running: Vec<Job> = (0..MAX_RUNNING_OF_ONE).map(|_| job("a")).collect();
        let kept: Vec<_> = running.iter().map(|job| jobs.begin(job.clone())).collect();
        assert!(kept.iter().all(Result::is_ok));
        assert!(jobs.begin(running[0].clone()).is_err(), "twice the same");
        let refused = jobs.begin(job("a")).unwrap_err();
        assert_eq!(refused.code, RefusalCode::Busy);
        let others = job("b");
        jobs.begin(others.clone()).unwrap();
        jobs.end(&others.id, OperationEnd::SUCCESS, false);
        for running in &running {
            jobs.end(&running.id, OperationEnd::SUCCESS, false);
        }
        for _ in 0..MAX_ENDED_OF_ONE {
            let job = job("a");
            jobs.begin(job.clone()).unwrap();
            jobs.end(&job.id, OperationEnd::SUCCESS, false);
        }
        assert_eq!(jobs.list(Some("a"), None).len(), MAX_ENDED_OF_ONE);
        assert_eq!(jobs.list(Some("b"), None).len(), 1, "others keep theirs");
        let left = fs::read_dir(scratch.join("jobs")).unwrap().count();
        assert_eq!(left, MAX_ENDED_OF_ONE + 1);
    }

    #[test]
    fn without_a_place_there_is_no_job() {
        let jobs = JobTable::open(None);
        assert!(jobs.begin(job("a")).is_err());
    }
}
