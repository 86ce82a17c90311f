//! What fills the disks, what can be deleted, and deleting it.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::helper_client::{
    CLEANUP_MARK, Capture, CleanupFinding, CleanupItem, CleanupOrder, CleanupResult,
    ContainerDiskReport, ContainerSize, DirectorySize, DiskCleanup, EngineDiskUse, HelperClient,
    HostDiskReport, Operation,
};
use gatewren_base::config::Reach;
use gatewren_base::sys::neutralise;

use super::super::error::{BackendError, ErrorKind};
use super::super::host::{Host, MountedFilesystem};
use super::super::long_work::{CallJob, LongOperation, run_long};
use super::super::request::{answer, ask_json};
use super::disks::Storage;

/// The timeout of a report; the helper counts for less than a minute.
const REPORT_TIME: Duration = Duration::from_secs(100);

/// The timeout for deleting.
const CLEANUP_TIME: Duration = Duration::from_hours(2);

/// How much of the output of a cleanup is kept: the results are at its end, after that of programs.
const CLEANUP_CAPTURE: Capture = Capture {
    head: 256 * 1024,
    tail: 256 * 1024,
};

/// The most bytes of each part of a report as JSON: about 40 kB together. The smallest entries are left out.
const ITEM_BYTES: usize = 20_000;
const CONTAINER_BYTES: usize = 8_000;
const DIRECTORY_BYTES: usize = 4_000;
const FILESYSTEM_BYTES: usize = 5_000;

/// The most sentences about what could not be read.
const MAX_PROBLEMS: usize = 5;

/// The disk space of the host and its containers.
#[derive(Debug)]
pub struct DiskReports {
    host: Arc<Host>,
    helper: HelperClient,
}

/// What fills the disks, and what can be deleted.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct DiskReport {
    /// The host's file systems, the one with the least space first.
    pub filesystems: Vec<FilesystemSpace>,
    /// The largest directories, largest first, each with its whole content.
    pub directories: Vec<DirectorySize>,
    /// The containers, largest first.
    pub containers: Vec<ContainerSize>,
    /// What Docker and Podman keep beside containers.
    pub engines: Vec<EngineDiskUse>,
    /// What `disk_cleanup` can delete, largest first.
    pub items: Vec<CleanupFinding>,
    /// What all items free together, in bytes.
    pub freeable_bytes: u64,
    /// The number of entries of all lists that were left out, the smallest.
    pub left_out: usize,
    /// Whether the time was over before everything was counted.
    pub incomplete: bool,
    /// What could not be read, in sentences.
    pub problems: Vec<String>,
}

/// A mounted file system with its space.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FilesystemSpace {
    /// Where it is mounted.
    pub path: String,
    /// Its kind, such as `ext4`.
    pub filesystem: String,
    /// Its size in bytes.
    pub total_bytes: u64,
    /// What an unprivileged program may still write, in bytes.
    pub available_bytes: u64,
    /// The usage, as `df` counts it.
    pub used_percent: f64,
}

impl DiskReports {
    /// Returns access to the disk space of this host.
    pub fn new(host: Arc<Host>, storage: &Storage) -> Self {
        Self {
            host,
            helper: storage.helper.clone(),
        }
    }

    /// Returns the report on what the caller may access. Images and volumes belong to no container: only callers with
    /// access to everything see them.
    ///
    /// # Errors
    /// When neither the host nor the containers can be read.
    pub async fn report(&self, reach: &Reach, reference: &str) -> Result<DiskReport, BackendError> {
        let (host, containers, mounts) = tokio::join!(
            self.host_part(reach, reference),
            self.container_part(reference),
            self.mounts(reach)
        );
        let mut report = DiskReport::default();
        match (host, containers) {
            (Err(error), Err(_)) => return Err(error),
            (host, containers) => {
                report.add_host(host, reach);
                report.add_containers(containers, reach);
            }
        }
        report.add_filesystems(mounts, reach);
        report.sort_and_cut();
        Ok(report)
    }

    async fn host_part(
        &self,
        reach: &Reach,
        reference: &str,
    ) -> Result<HostDiskReport, BackendError> {
        if !reach.host() {
            return Ok(HostDiskReport::default());
        }
        let operation = Operation::HostDiskReport {};
        ask_json(&self.helper, operation, REPORT_TIME, reference).await
    }

    async fn mounts(&self, reach: &Reach) -> Vec<MountedFilesystem> {
        if !reach.host() {
            return Vec::new();
        }
        let disks = self.host.disks().await;
        disks.map(|(_, mounts)| mounts).unwrap_or_default()
    }

    async fn container_part(&self, reference: &str) -> Result<ContainerDiskReport, BackendError> {
        let operation = Operation::ContainerDiskReport {};
        ask_json(&self.helper, operation, REPORT_TIME, reference).await
    }

    /// Deletes items and returns the result of each, in their order. An inaccessible container's snapshot is like a
    /// missing one's.
    ///
    /// # Errors
    /// When the owner's file does not allow it.
    pub async fn clean(
        &self,
        cleanup: CleanupRequest,
        job: Option<CallJob>,
    ) -> Result<Vec<CleanupResult>, BackendError> {
        let CleanupRequest {
            items,
            reach,
            agent,
            reference,
        } = cleanup;
        let sent: Vec<CleanupOrder> = items.iter().filter_map(|one| sent(one, &reach)).collect();
        let mut done = Vec::new();
        if !sent.is_empty() {
            let operation = Operation::DiskCleanup(DiskCleanup { items: sent, agent });
            let long = LongOperation {
                capture: CLEANUP_CAPTURE,
                ..LongOperation::new(operation, CLEANUP_TIME)
            };
            let finished = run_long(&self.helper, long, job, &reference).await?;
            answer(&finished)?;
            let output = [finished.stdout.head, finished.stdout.tail].concat();
            done = parse_results(&output)?;
        }
        let mut done = done.into_iter();
        let results = items
            .into_iter()
            .map(|order| match access(&order.id, &reach) {
                Err(error) => CleanupResult {
                    id: order.id,
                    freed_bytes: 0,
                    error: Some(error.to_owned()),
                },
                Ok(()) => unmasked(order.id, done.next()),
            });
        Ok(results.collect())
    }
}

/// A request to delete items.
#[derive(Debug)]
pub struct CleanupRequest {
    /// The items.
    pub items: Vec<CleanupOrder>,
    /// What the caller may access.
    pub reach: Reach,
    /// The agent, for apt's own history.
    pub agent: String,
    /// The reference of the call, for the helper's log.
    pub reference: String,
}

/// Whether a caller may ask for an item; otherwise the reason. The helper decides about a container's snapshot.
fn access(item: &CleanupItem, reach: &Reach) -> Result<(), &'static str> {
    match item {
        CleanupItem::Snapshot { .. } => Ok(()),
        CleanupItem::Volume { .. } | CleanupItem::Image { .. } | CleanupItem::BuildCache { .. } => {
            let words = "the whole server is not within this agent's reach";
            reach.is_everything().then_some(()).ok_or(words)
        }
        CleanupItem::AptCache
        | CleanupItem::Journal
        | CleanupItem::OldKernel(_)
        | CleanupItem::CoreDump(_) => {
            let words = "the host is not within this agent's reach";
            reach.host().then_some(()).ok_or(words)
        }
    }
}

/// Returns the order as it is sent to the helper: an inaccessible container has a name that no container has.
fn sent(order: &CleanupOrder, reach: &Reach) -> Option<CleanupOrder> {
    access(&order.id, reach).ok()?;
    let id = match &order.id {
        CleanupItem::Snapshot {
            container,
            snapshot,
        } if !reach.container(container.as_str()) => CleanupItem::Snapshot {
            container: container.of_none(),
            snapshot: snapshot.clone(),
        },
        id => id.clone(),
    };
    Some(CleanupOrder {
        id,
        bytes: order.bytes,
    })
}

/// Returns the helper's result under the requested id.
fn unmasked(id: CleanupItem, done: Option<CleanupResult>) -> CleanupResult {
    let Some(done) = done else {
        let error = Some("the helper returned no result for it".to_owned());
        return CleanupResult {
            id,
            freed_bytes: 0,
            error,
        };
    };
    let mut error = done.error;
    if let (CleanupItem::Snapshot { container: own, .. }, CleanupItem::Snapshot { container, .. }) =
        (&done.id, &id)
    {
        error = error.map(|words| words.replace(own.as_str(), container.as_str()));
    }
    CleanupResult {
        id,
        freed_bytes: done.freed_bytes,
        error: error.map(|words| neutralise(&words).into_owned()),
    }
}

/// Parses the results at the end of the helper's output.
fn parse_results(output: &[u8]) -> Result<Vec<CleanupResult>, BackendError> {
    let text = String::from_utf8_lossy(output);
    let results = text.rsplit_once(CLEANUP_MARK).map(|(_, json)| json);
    let results = results.and_then(|json| serde_json::from_str(json).ok());
    results.ok_or_else(|| {
        let words = "the helper's answer has no results; disk_report shows what is left";
        BackendError::new(ErrorKind::Failed, words)
    })
}

impl DiskReport {
    fn add_host(&mut self, part: Result<HostDiskReport, BackendError>, reach: &Reach) {
        match part {
            Ok(part) => {
                let seen = part.directories.into_iter();
                self.directories
                    .extend(seen.filter(|one| reach.path(&one.path)));
                self.items.extend(part.items);
                self.incomplete |= part.incomplete;
            }
            Err(error) => self.problems.push(error.message),
        }
    }

    fn add_containers(&mut self, part: Result<ContainerDiskReport, BackendError>, reach: &Reach) {
        let part = match part {
            Ok(part) => part,
            Err(error) => return self.problems.push(error.message),
        };
        let containers = part.containers.into_iter();
        self.containers
            .extend(containers.filter(|one| reach.container(one.container.as_str())));
        let seen = |item: &CleanupFinding| match &item.id {
            CleanupItem::Snapshot { container, .. } => reach.container(container.as_str()),
            id => access(id, reach).is_ok(),
        };
        self.items.extend(part.items.into_iter().filter(seen));
        if reach.is_everything() {
            self.engines.extend(part.engines);
            self.problems.extend(part.problems);
        }
        self.incomplete |= part.incomplete;
        if !reach.host() {
            // Where containers are on the host is not for callers without access to it.
            self.containers.iter_mut().for_each(|one| one.path = None);
            self.items.iter_mut().for_each(|one| one.path = None);
        }
    }

    fn add_filesystems(&mut self, mounts: Vec<MountedFilesystem>, reach: &Reach) {
        let mounts = mounts
            .into_iter()
            .filter(|(point, _)| reach.path(&point.path));
        let sized = mounts.filter_map(|(_, mount)| mount);
        self.filesystems.extend(sized.map(|mount| FilesystemSpace {
            available_bytes: mount.available_bytes,
            used_percent: mount.used_percent,
            total_bytes: mount.total_bytes,
            path: neutralise(&mount.path).into_owned(),
            filesystem: mount.filesystem,
        }));
    }

    fn sort_and_cut(&mut self) {
        self.freeable_bytes = self.items.iter().map(|item| item.bytes).sum();
        self.filesystems
            .sort_by(|a, b| b.used_percent.total_cmp(&a.used_percent));
        self.containers.sort_by(|a, b| {
            let size =
                |one: &ContainerSize| one.bytes.unwrap_or(0) + one.snapshot_bytes.unwrap_or(0);
            (size(b), &a.container).cmp(&(size(a), &b.container))
        });
        self.items
            .sort_by(|a, b| (b.bytes, &a.id).cmp(&(a.bytes, &b.id)));
        for directory in &mut self.directories {
            directory.path = neutralise(&directory.path).into_owned();
        }
        self.left_out = cut(&mut self.filesystems, FILESYSTEM_BYTES)
            + cut(&mut self.directories, DIRECTORY_BYTES)
            + cut(&mut self.containers, CONTAINER_BYTES)
            + cut(&mut self.items, ITEM_BYTES);
        self.problems.truncate(MAX_PROBLEMS);
        for problem in &mut self.problems {
            *problem = neutralise(problem).into_owned();
        }
    }
}

/// Keeps the first entries that have at most this many bytes as JSON; returns how many were left out.
fn cut<T: Serialize>(list: &mut Vec<T>, most: usize) -> usize {
    let mut bytes = 0_usize;
    let fits = list.iter().take_while(|entry| {
        // Plain numbers and strings always serialize.
        bytes += serde_json::to_string(entry).unwrap_or_default().len() + 1;
        bytes <= most
    });
    let kept = fits.count();
    let left_out = list.len() - kept;
    list.truncate(kept);
    left_out
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewren_base::config::{Glob, Space};

    fn finding(id: &str, bytes: u64) -> CleanupFinding {
        CleanupFinding {
            id: id.parse().unwrap(),
            bytes,
            path: Some("/x".to_owned()),
            why: String::new(),
            irreversible: true,
        }
    }

    fn pond() -> Reach {
        let heron: Glob = "heron".parse().unwrap();
        Reach::of(&Space {
            containers: vec![heron],
            ..Space::default()
        })
    }

    fn container_part() -> ContainerDiskReport {
        ContainerDiskReport {
            containers: ["heron", "plover"]
                .map(|name| ContainerSize {
                    container: name.parse().unwrap(),
                    bytes: Some(7),
                    path: Some("/var/lib/lxc/x".to_owned()),
                    snapshot_bytes: None,
                })
                .into(),
            items: vec![
                finding("snapshot:heron/snap0", 1),
                finding("snapshot:plover/snap0", 2),
                finding("volume:docker/data", 3),
            ],
            problems: vec!["docker does not answer".to_owned()],
            ..ContainerDiskReport::default()
        }
    }

    #[test]
    fn an_agent_of_a_space_sees_the_space_of_its_own_containers_only() {
        let mut report = DiskReport::default();
        report.add_host(Ok(HostDiskReport::default()), &pond());
        report.add_containers(Ok(container_part()), &pond());
        report.sort_and_cut();
        let text = serde_json::to_string(&report).unwrap();
        assert!(text.contains("snapshot:heron/snap0"), "{text}");
        for other in ["plover", "volume", "/var/lib", "docker"] {
            assert!(!text.contains(other), "{other}: {text}");
        }
        assert_eq!(report.freeable_bytes, 1);
    }

    #[test]
    fn another_spaces_snapshot_is_ordered_under_a_name_that_no_container_has() {
        let order = |id: &str| CleanupOrder {
            id: id.parse().unwrap(),
            bytes: 1,
        };
        let masked = sent(&order("snapshot:plover/snap0"), &pond()).unwrap();
        let CleanupItem::Snapshot { container, .. } = &masked.id else {
            panic!("{masked:?}");
        };
        assert_ne!(container.as_str(), "plover");
        let missing = CleanupResult {
            error: Some(format!("container '{container}' does not exist")),
            id: masked.id.clone(),
            freed_bytes: 0,
        };
        let shown = unmasked("snapshot:plover/snap0".parse().unwrap(), Some(missing));
        let words = "container 'plover' does not exist";
        assert_eq!(shown.error.as_deref(), Some(words));
        let own = sent(&order("snapshot:heron/snap0"), &pond()).unwrap();
        assert_eq!(own.id.to_string(), "snapshot:heron/snap0");
        for of_host in [
            "apt-cache",
            "journal",
            "volume:docker/data",
            "build-cache:podman",
        ] {
            assert!(sent(&order(of_host), &pond()).is_none(), "{of_host}");
            assert!(sent(&order(of_host), &Reach::everything()).is_some());
        }
    }

    #[test]
    fn the_smallest_entries_of_a_long_report_are_left_out() {
        let mut report = DiskReport::default();
        for number in 0..1000_u64 {
            report
                .items
                .push(finding(&format!("volume:docker/v{number:0>200}"), number));
        }
        report.sort_and_cut();
        assert!(serde_json::to_string(&report).unwrap().len() < 40_000);
        assert_eq!(report.items[0].bytes, 999);
        assert_eq!(report.items.len() + report.left_out, 1000);
        assert_eq!(report.freeable_bytes, 999 * 500);
    }

    #[test]
    fn the_results_are_what_follows_the_last_mark() {
        let output = b"Setting up x\ngatewren: cleanup [{\"id\":\"journal\",\"freed_bytes\":5}]\n";
        let results = parse_results(output).unwrap();
        assert_eq!(results[0].freed_bytes, 5);
        assert!(parse_results(b"killed").is_err());
    }
}
