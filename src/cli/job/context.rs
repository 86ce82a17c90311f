//! Connects to the helper that has the jobs: systemd's, or the one that a server has started itself.

use std::fs::{self, File};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tokio::sync::watch;

use super::super::console::selected::SelectedKind;
use super::super::console::target::InstanceArgs;
use super::super::inbox::InboxContext;
use gatewren_base::config::Settings;
use gatewren_base::sys::Requester;
use gatewren_host::backends::{JobStatus, Jobs, JobsView};
use gatewren_host::helper_client::HelperClient;

pub(super) const JOB: SelectedKind = SelectedKind {
    tag: "job_",
    noun: "job",
    list: "job list",
};

/// The requester's name in the helper's log and in the audit.
const REFERENCE: &str = "gatewren job";

/// The jobs, and the names of the agents that own them.
pub struct JobContext {
    /// The open vault.
    pub inbox: InboxContext,
    jobs: Jobs,
    _stop: watch::Sender<bool>,
    /// Kept open, because the helper's address may lead through it.
    _directory: Option<File>,
}

impl JobContext {
    /// Connects to the helper of that gatewren. The helper serves only its front's user, so root acts as that
    /// user from here on.
    pub fn open(place: &InstanceArgs) -> Result<Self, String> {
        let settings = place.settings()?;
        let vault = place.file("vault.db")?;
        let inbox = InboxContext::new(place.vault()?)?;
        let (socket, directory) = helper_of(place, &settings, &vault)?;
        let stop = watch::Sender::new(false);
        let helper = HelperClient::connect_to(socket);
        Ok(Self {
            inbox,
            jobs: Jobs::new(helper.on_behalf_of(Requester::Owner), stop.subscribe()),
            _stop: stop,
            _directory: directory,
        })
    }

    /// The jobs of all agents.
    pub fn all(&self) -> JobsView<'_> {
        self.jobs.of_all_agents(REFERENCE)
    }

    /// Returns the job with this id, or the only one whose id has this prefix.
    pub async fn one(&self, named: &str) -> Result<JobStatus, String> {
        let all = self.all().all().await;
        let all = all.map_err(|e| e.to_string())?;
        let found = all
            .jobs
            .into_iter()
            .filter(|job| JOB.begins(job.job.as_str(), named));
        JOB.only(found, named)
    }
}

/// The socket of that gatewren's helper, and the directory that must stay open for it.
pub fn helper_of(
    place: &InstanceArgs,
    settings: &Settings,
    vault: &Path,
) -> Result<(PathBuf, Option<File>), String> {
    if place.is_a_directory() || !settings.helper.socket.exists() {
        let state_dir = vault.parent().unwrap_or(Path::new("."));
        return find_started_helper(&state_dir.join("run"));
    }
    Ok((settings.helper.socket.clone(), None))
}

/// The socket of a helper that a server has started: the newest, because older ones were left behind. Its path
/// leads through the open directory, because the path of a socket is limited to 107 bytes.
fn find_started_helper(directory: &Path) -> Result<(PathBuf, Option<File>), String> {
    let none = || {
        "no helper is running; start gatewren-helper.socket, or the server of this directory"
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
