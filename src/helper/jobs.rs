//! The jobs of this box: those that run, and of those that have ended as many as there is room for, on the disk.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, watch};

use crate::exec::{Ending, Frame, Job, JobId, KillReason, RefusalCode};
use crate::sys::files::{private_dir, read_bounded, write_private};
use crate::sys::{FileError, now_ms};

use super::{
    job_log::{JobLog, MOST_BYTES, found},
    keeper::{Keeper, Printed},
    refusal::Refusal,
};

/// Jobs at once; one more is refused as busy.
const MAX_RUNNING: usize = 32;

/// The same for one agent.
const MAX_RUNNING_OF_ONE: usize = 8;

/// Jobs that are kept after their end, for each agent and in all; for a further one the oldest goes.
const MAX_ENDED_OF_ONE: usize = 50;
const MAX_ENDED: usize = 200;

/// What the output of ended jobs takes on the disk in all; for more the oldest go.
const MAX_ENDED_BYTES: u64 = 256 << 20;

/// The longest owner and tool that a job has.
const NAME_BYTES: usize = 128;

/// The longest record of a job.
const RECORD_BYTES: usize = 16 * 1024;

/// The file that says what a job is.
const RECORD: &str = "record.json";

/// So much output waits for a listener that is slower than the job.
const LISTENER_FRAMES: usize = 8;

/// Every job. Which there are for whom is decided here alone.
#[derive(Debug)]
pub struct Jobs {
    directory: Option<PathBuf>,
    entries: Mutex<BTreeMap<JobId, Entry>>,
    /// Rung when one has ended.
    bell: watch::Sender<u64>,
}

#[derive(Debug)]
struct Entry {
    job: Job,
    printed: Arc<Printed>,
    cancel: watch::Sender<bool>,
}

impl Jobs {
    /// The jobs in a directory of the helper's own; those that an earlier helper left running ended with it. Without
    /// a directory there can be none.
    pub fn open(directory: Option<PathBuf>) -> Self {
        let entries = directory.as_deref().map(load).unwrap_or_default();
        Self {
            directory,
            entries: Mutex::new(entries),
            bell: watch::Sender::new(0),
        }
    }

    /// Writes down that a job begins, and makes room for it; where its output goes, and where it is heard.
    pub fn begin(&self, job: Job) -> Result<(Keeper, mpsc::Receiver<Frame>), Refusal> {
        let Some(directory) = &self.directory else {
            return Err(Refusal::failed(
                "this helper has no directory to keep jobs in: systemd gives it one (StateDirectory=), other starters \
                 say --state-dir",
            ));
        };
        if job.owner.len() > NAME_BYTES || job.tool.len() > NAME_BYTES {
            return Err(Refusal::bad_command("the job's owner or tool is too long"));
        }
        let mut entries = self.lock();
        check_room(&entries, &job)?;
        make_room(directory, &mut entries, &job.owner);
        let own = directory.join(job.id.as_str());
        let kept = private_dir(&own).and_then(|()| write(&own, &job));
        kept.map_err(|e| Refusal::failed(format!("the job cannot be kept: {e}")))?;
        let (printed, cancel) = (Arc::<Printed>::default(), watch::Sender::new(false));
        let (listener, heard) = mpsc::channel(LISTENER_FRAMES);
        let keeper = Keeper::new(
            JobLog::new(own),
            Arc::clone(&printed),
            cancel.subscribe(),
            listener,
        );
        let entry = Entry {
            printed,
            cancel,
            job: job.clone(),
        };
        entries.insert(job.id, entry);
        Ok((keeper, heard))
    }

    /// Writes down that it has ended, and how.
    pub fn end(&self, id: &JobId, ending: Ending) {
        if let Some(entry) = self.lock().get_mut(id) {
            entry.job = entry.now();
            entry.job.ending = Some(ending);
            entry.job.ended_ms = Some(now_ms());
            let own = self.directory.as_deref().map(|d| d.join(id.as_str()));
            if let Some(Err(cause)) = own.map(|own| write(&own, &entry.job)) {
                tracing::error!(%cause, "the end of a job could not be written down");
            }
        }
        self.bell.send_modify(|rung| *rung += 1);
    }

    /// Those of an owner, or everybody's, or the one of this id among them; the newest first.
    pub fn list(&self, owner: Option<&str>, id: Option<&JobId>) -> Vec<Job> {
        let entries = self.lock();
        let found = entries.values().filter(|entry| {
            let own = owner.is_none_or(|owner| entry.job.owner == owner);
            own && id.is_none_or(|id| entry.job.id == *id)
        });
        let mut jobs: Vec<Job> = found.map(Entry::now).collect();
        jobs.sort_by(|a, b| (b.began_ms, &b.id).cmp(&(a.began_ms, &a.id)));
        jobs
    }

    /// One of an owner. Another's is as one that never was.
    pub fn find(&self, owner: Option<&str>, id: &JobId) -> Result<Job, Refusal> {
        let found = self.list(owner, Some(id)).pop();
        found.ok_or_else(|| no_such_job(id))
    }

    /// Tells one to end; one that has ended hears nothing.
    pub fn cancel(&self, id: &JobId) {
        if let Some(entry) = self.lock().get(id) {
            entry.cancel.send_replace(true);
        }
    }

    /// Where one's output is.
    pub fn place(&self, id: &JobId) -> Option<PathBuf> {
        Some(self.directory.as_ref()?.join(id.as_str()))
    }

    /// Rings when one has ended.
    pub fn bell(&self) -> watch::Receiver<u64> {
        self.bell.subscribe()
    }

    /// How many run.
    pub fn running(&self) -> usize {
        let entries = self.lock();
        entries.values().filter(|entry| entry.runs()).count()
    }

    /// Waits until none runs.
    pub async fn idle(&self) {
        let mut bell = self.bell();
        while self.running() > 0 && bell.changed().await.is_ok() {}
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<JobId, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn runs(&self) -> bool {
        self.job.ending.is_none()
    }

    /// The job with what it has printed until now.
    fn now(&self) -> Job {
        let mut job = self.job.clone();
        if self.runs() {
            (job.output_bytes, job.lost_bytes) = self.printed.now();
        }
        job
    }
}

/// Says that there is none.
pub fn no_such_job(id: &JobId) -> Refusal {
    let message = format!("there is no job {id}; job_list names those that there are");
    Refusal::new(RefusalCode::NoSuchJob, message)
}

fn check_room(entries: &BTreeMap<JobId, Entry>, job: &Job) -> Result<(), Refusal> {
    if entries.contains_key(&job.id) {
        return Err(Refusal::bad_command("a job of this id was there before"));
    }
    let running = || entries.values().filter(|entry| entry.runs());
    let own = running().filter(|entry| entry.job.owner == job.owner);
    if own.count() >= MAX_RUNNING_OF_ONE || running().count() >= MAX_RUNNING {
        let message = format!(
            "too many jobs run: at most {MAX_RUNNING_OF_ONE} of one agent and {MAX_RUNNING} in all; wait for one \
             (job_wait), or end one (job_cancel)"
        );
        return Err(Refusal::new(RefusalCode::Busy, message));
    }
    Ok(())
}

/// Removes the oldest of those that have ended until there is room for one more.
fn make_room(directory: &Path, entries: &mut BTreeMap<JobId, Entry>, owner: &str) {
    let mut ended: Vec<Job> = entries
        .values()
        .filter(|entry| !entry.runs())
        .map(|entry| entry.job.clone())
        .collect();
    ended.sort_by_key(|job| std::cmp::Reverse(job.ended_ms));
    let (mut all, mut own, mut bytes) = (0, 0, 0);
    for job in ended {
        all += 1;
        own += usize::from(job.owner == owner);
        bytes += job.output_bytes.min(MOST_BYTES);
        let too_many = all >= MAX_ENDED || job.owner == owner && own >= MAX_ENDED_OF_ONE;
        if too_many || bytes > MAX_ENDED_BYTES {
            if let Err(cause) = fs::remove_dir_all(directory.join(job.id.as_str())) {
                tracing::warn!(%cause, job = %job.id, "an old job could not be removed");
            }
            entries.remove(&job.id);
        }
    }
}

/// What an earlier helper left.
fn load(directory: &Path) -> BTreeMap<JobId, Entry> {
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
            tracing::warn!(job = %id, ?removed, "a job without a record is removed");
            continue;
        };
        let entry = Entry {
            job: ended(&place.path(), job),
            printed: Arc::default(),
            cancel: watch::Sender::new(false),
        };
        entries.insert(id, entry);
    }
    entries
}

/// A job of an earlier helper, with which it ended.
fn ended(place: &Path, mut job: Job) -> Job {
    if job.ending.is_some() {
        return job;
    }
    let why = KillReason::Lost;
    job.ending = Some(Ending::Killed { why });
    job.ended_ms = Some(now_ms());
    job.output_bytes = found(place);
    if let Err(cause) = write(place, &job) {
        tracing::error!(%cause, "the end of a job could not be written down");
    }
    tracing::warn!(job = %job.id, owner = job.owner, "a job ended with the helper that ran it");
    job
}

fn write(place: &Path, job: &Job) -> Result<(), FileError> {
    // Plain words and numbers: there is nothing that JSON cannot hold.
    let record = serde_json::to_vec(job).unwrap_or_default();
    write_private(&place.join(RECORD), &record)
}

#[cfg(test)]
mod tests {
    use crate::exec::Stream;
    use crate::sys::Scratch;

    use super::*;

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
            output_bytes: 0,
            lost_bytes: 0,
        }
    }

    fn jobs(scratch: &Scratch) -> Jobs {
        Jobs::open(Some(scratch.join("jobs")))
    }

    const DONE: Ending = Ending::Exited { code: 0 };

    #[tokio::test]
    async fn a_job_is_there_for_its_owner_and_outlives_the_helper() {
        let scratch = Scratch::new();
        let first = jobs(&scratch);
        let (done, runs) = (job("a"), job("a"));
        let (mut keeper, _heard) = first.begin(done.clone()).unwrap();
        keeper.put(Stream::Stderr, b"hello".to_vec()).await;
        first.end(&done.id, DONE);
        let (mut keeper, _heard) = first.begin(runs.clone()).unwrap();
        keeper.put(Stream::Stdout, b"abc".to_vec()).await;
        assert_eq!(first.running(), 1);
        assert_eq!(first.find(Some("a"), &runs.id).unwrap().output_bytes, 3);
        let other = first.find(Some("b"), &runs.id);
        let never = first.find(Some("a"), &JobId::random());
        for none in [other, never] {
            let Ending::Refused { code, .. } = none.unwrap_err().into() else {
                panic!("a refusal is an ending");
            };
            assert_eq!(code, RefusalCode::NoSuchJob);
        }

        // As if it had been killed.
        let second = jobs(&scratch);
        assert_eq!(second.running(), 0);
        assert_eq!(second.list(Some("b"), None), []);
        let kept = second.find(Some("a"), &done.id).unwrap();
        assert_eq!((kept.ending, kept.output_bytes), (Some(DONE), 5));
        let lost = second.find(None, &runs.id).unwrap();
        let why = KillReason::Lost;
        assert_eq!(lost.ending, Some(Ending::Killed { why }));
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
        let Ending::Refused { code, .. } = jobs.begin(job("a")).unwrap_err().into() else {
            panic!("a refusal is an ending");
        };
        assert_eq!(code, RefusalCode::Busy);
        let others = job("b");
        jobs.begin(others.clone()).unwrap();
        jobs.end(&others.id, DONE);
        for running in &running {
            jobs.end(&running.id, DONE);
        }
        for _ in 0..MAX_ENDED_OF_ONE {
            let job = job("a");
            jobs.begin(job.clone()).unwrap();
            jobs.end(&job.id, DONE);
        }
        assert_eq!(jobs.list(Some("a"), None).len(), MAX_ENDED_OF_ONE);
        assert_eq!(jobs.list(Some("b"), None).len(), 1, "others keep theirs");
        let left = fs::read_dir(scratch.join("jobs")).unwrap().count();
        assert_eq!(left, MAX_ENDED_OF_ONE + 1);
    }

    #[test]
    fn without_a_place_there_is_no_job() {
        let jobs = Jobs::open(None);
        assert!(jobs.begin(job("a")).is_err());
    }
}
