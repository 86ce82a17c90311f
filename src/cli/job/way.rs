//! The way to the helper that keeps the jobs: the one of systemd, or the one that a server has started itself.

use std::fs::{self, File};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tokio::sync::watch;

use super::super::{inbox::Desk, place::Place};
use crate::backends::{JobStanding, Jobs, JobsView};
use crate::config::Settings;
use crate::helper_client::Helper;
use crate::sys::Requester;

/// What the helper's log and the audit say who asked.
const REFERENCE: &str = "gatewren job";

/// The jobs, and the names of the agents whose they are.
pub struct Way {
    /// The open vault.
    pub desk: Desk,
    jobs: Jobs,
    _stop: watch::Sender<bool>,
    /// Kept open, for the helper's address may go through it.
    _directory: Option<File>,
}

/// A job and whose it is.
pub type Owned = (String, JobStanding);

impl Way {
    /// To the helper of that gatewren. The helper serves its front's user alone, as which root acts from here on.
    pub fn open(place: &Place) -> Result<Self, String> {
        let settings = place.settings()?;
        let vault = place.file("vault.db")?;
        let desk = Desk::new(place.vault()?)?;
        let (socket, directory) = helper_of(place, &settings, &vault)?;
        let stop = watch::Sender::new(false);
        let helper = Helper::connect_to(socket);
        Ok(Self {
            desk,
            jobs: Jobs::new(helper.on_behalf_of(Requester::Owner), stop.subscribe()),
            _stop: stop,
            _directory: directory,
        })
    }

    /// Everybody's jobs.
    pub fn all(&self) -> JobsView<'_> {
        self.jobs.of_everybody(REFERENCE)
    }

    /// The job with this id, or the only one whose id begins so.
    pub async fn one(&self, named: &str) -> Result<Owned, String> {
        /// Shorter beginnings are more often a slip than a choice.
        const LEAST: usize = 4;
        let digits = named.strip_prefix("job_").unwrap_or(named);
        let begins = |(_, job): &Owned| {
            let id = job.job.as_str().strip_prefix("job_");
            digits.len() >= LEAST && id.is_some_and(|id| id.starts_with(digits))
        };
        let all = self.all().all_with_owners().await;
        let all = all.map_err(|e| e.to_string())?;
        let mut found = all.into_iter().filter(begins);
        match (found.next(), found.next()) {
            (Some(job), None) => Ok(job),
            (None, _) => Err(format!(
                "there is no job {named:?}; `gatewren job list` shows them"
            )),
            (Some(_), Some(_)) => Err(format!(
                "several jobs begin with {named:?}; give more of the id"
            )),
        }
    }
}

/// The socket of the helper of that gatewren, and what must be kept open for it.
pub fn helper_of(
    place: &Place,
    settings: &Settings,
    vault: &Path,
) -> Result<(PathBuf, Option<File>), String> {
    if place.is_a_directory() || !settings.helper.socket.exists() {
        let state_dir = vault.parent().unwrap_or(Path::new("."));
        return started(&state_dir.join("run"));
    }
    Ok((settings.helper.socket.clone(), None))
}

/// The socket of a helper that a server has started: the newest, for what is older was left behind. Its path goes
/// through the open directory, for a socket's path may have 107 bytes only.
fn started(directory: &Path) -> Result<(PathBuf, Option<File>), String> {
    let none = || {
        "there is no helper; start gatewren-helper.socket, or the server whose directory was named"
            .to_owned()
    };
    let opened = File::open(directory).map_err(|_| none())?;
    let entries = fs::read_dir(directory).map_err(|_| none())?;
    let sockets = entries.filter_map(|entry| {
        let entry = entry.ok()?;
        let name = entry.file_name().into_string().ok()?;
        let inner = name.strip_prefix("helper-");
        let is_one = inner.is_some_and(|name| name.strip_suffix(".sock").is_some());
        let made = entry.metadata().and_then(|facts| facts.modified());
        is_one.then(|| (made.unwrap_or(SystemTime::UNIX_EPOCH), name))
    });
    let (_, newest) = sockets.max().ok_or_else(none)?;
    let path = format!("/proc/self/fd/{}/{newest}", opened.as_raw_fd());
    Ok((path.into(), Some(opened)))
}
