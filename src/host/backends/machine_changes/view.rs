//! The changes that a caller may see.

use std::path::Path;
use std::time::{Duration, Instant};

use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::helper_client::{ContainerRef, HelperClient, SystemRecord};
use gatewren_base::config::{Reach, RuntimeKind};

use super::super::access_filter::AccessFilter;
use super::super::error::BackendError;
use super::super::lxc::Lxc;
use super::super::records::{RecordOwner, RecordReader};
use super::super::side_by_side::side_by_side;
use super::super::unread::UnreadSource;
use super::dpkg_log::{PackageChange, decompressed, dpkg_changes};
use super::etc_files::{ChangedFiles, changed_files};

/// The most containers whose packages are read.
const MAX_CONTAINERS: usize = 30;

/// The time for all containers, and for one machine.
const TIME: Duration = Duration::from_secs(15);
const MACHINE_TIME: Duration = Duration::from_secs(5);

/// The logs of packages, newest first.
const PACKAGE_LOGS: [SystemRecord; 3] = [
    SystemRecord::Packages,
    SystemRecord::OlderPackages,
    SystemRecord::OldestPackages,
];

/// The directory whose files are listed.
const ETC: &str = "/etc";

/// Reads changes.
#[derive(Debug, Clone)]
pub struct MachineChanges {
    helper: HelperClient,
    lxc: Lxc,
}

/// The packages of one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachinePackages {
    /// The container; absent for the host.
    pub container: Option<ContainerRef>,
    /// What changed; empty if nothing did.
    pub changes: Vec<PackageChange>,
}

/// The changes, and what could not be read.
#[derive(Debug, Default)]
pub struct MachineChangesFound {
    /// The packages of each machine that has dpkg.
    pub packages: Vec<MachinePackages>,
    /// Files of the host's `/etc`; absent for a caller that does not reach the host.
    pub files: Option<ChangedFiles>,
    /// What could not be read, or not in full.
    pub unread: Vec<UnreadSource>,
}

impl MachineChanges {
    /// Returns access through this helper.
    pub fn new(helper: HelperClient) -> Self {
        Self {
            lxc: Lxc::new(helper.clone()),
            helper,
        }
    }

    /// Returns what changed since a time, in milliseconds since 1970, as far as a caller with this reach may see it.
    pub async fn find(&self, reach: &Reach, since_ms: u64, reference: &str) -> MachineChangesFound {
        let records = RecordReader {
            helper: &self.helper,
            reference,
        };
        let access = AccessFilter::of(reach);
        let reaches_host = access.host().is_ok();
        let files = async {
            if !reaches_host {
                return None;
            }
            let files = spawn_blocking(move || changed_files(Path::new(ETC), since_ms)).await;
            files.ok().map(|mut files| {
                files.files.retain(|file| access.shows_text(&file.path));
                files
            })
        };
        let host = async {
            if reaches_host {
                read_packages(records, None, since_ms).await
            } else {
                MachineChangesFound::default()
            }
        };
        let containers = self.containers(reach, since_ms, records);
        let (files, mut found, mut containers) = tokio::join!(files, host, containers);
        found.append(&mut containers);
        found.files = files;
        found
    }

    /// Returns what changed in containers.
    async fn containers(
        &self,
        reach: &Reach,
        since_ms: u64,
        records: RecordReader<'_>,
    ) -> MachineChangesFound {
        let mut found = MachineChangesFound::default();
        let mut containers = match self.lxc.view_for(reach, records.reference).list().await {
            Ok(containers) => containers,
            Err(error) => {
                found
                    .unread
                    .push(UnreadSource::new("packages of containers", &error.message));
                return found;
            }
        };
        containers.retain(|name| name.runtime() == RuntimeKind::Lxc);
        let mut is_cut = containers.len() > MAX_CONTAINERS;
        containers.truncate(MAX_CONTAINERS);
        let begun = Instant::now();
        let all = side_by_side(containers, |container| async move {
            if begun.elapsed() > TIME {
                return None;
            }
            Some(read_packages(records, Some(&container), since_ms).await)
        });
        for of_container in all.await {
            match of_container {
                Some(mut of_container) => found.append(&mut of_container),
                None => is_cut = true,
            }
        }
        if is_cut {
            let why = "there are too many; update_history reads one";
            found
                .unread
                .push(UnreadSource::new("packages of further containers", why));
        }
        found
    }
}

impl MachineChangesFound {
    fn append(&mut self, others: &mut Self) {
        self.packages.append(&mut others.packages);
        self.unread.append(&mut others.unread);
    }
}

async fn read_packages(
    records: RecordReader<'_>,
    container: Option<&ContainerRef>,
    since_ms: u64,
) -> MachineChangesFound {
    let mut found = MachineChangesFound::default();
    let owner = container.map_or(RecordOwner::Host, RecordOwner::Container);
    let source = match container {
        Some(container) => format!("packages of {container}"),
        None => "packages of host".to_owned(),
    };
    let read = timeout(MACHINE_TIME, read_logs(records, owner, since_ms)).await;
    if let Ok(Ok(PackageLogs { is_cut: true, .. })) = &read {
        let why = "its oldest log is damaged or too long";
        found.unread.push(UnreadSource::new(source.as_str(), why));
    }
    match read.map(|read| read.map(|logs| logs.changes)) {
        Ok(Ok(Some(changes))) => found.packages.push(MachinePackages {
            container: container.cloned(),
            changes,
        }),
        // Another program manages the packages, or none; only on the host that is news.
        Ok(Ok(None)) if container.is_some() => {}
        Ok(Ok(None)) => found
            .unread
            .push(UnreadSource::new(source, "there is no dpkg.log")),
        Ok(Err(error)) => found.unread.push(UnreadSource::new(source, &error.message)),
        Err(_) => found
            .unread
            .push(UnreadSource::new(source, "reading timed out")),
    }
    found
}

/// What the logs of packages of a machine have about a period.
struct PackageLogs {
    /// The changes; absent if there is no log.
    changes: Option<Vec<PackageChange>>,
    /// Whether a log could not be read to its beginning.
    is_cut: bool,
}

async fn read_logs(
    records: RecordReader<'_>,
    owner: RecordOwner<'_>,
    since_ms: u64,
) -> Result<PackageLogs, BackendError> {
    let records = records.of_machine(owner).await;
    let zone = records.zone().await;
    let mut changes: Vec<PackageChange> = Vec::new();
    let (mut exists, mut is_cut) = (false, false);
    for record in PACKAGE_LOGS {
        let Some(end) = records.read(record).await? else {
            continue;
        };
        exists = true;
        let log = match record {
            // Without its beginning it cannot be decompressed.
            SystemRecord::OldestPackages if end.offset > 0 => None,
            SystemRecord::OldestPackages => decompressed(&end.bytes),
            _ => Some(end.bytes),
        };
        let Some(log) = log else {
            is_cut = true;
            break;
        };
        let part = dpkg_changes(&log, &zone, since_ms);
        // The older file comes second; a package that both have began with the older version.
        for change in part.changes {
            match changes.iter_mut().find(|known| known.name == change.name) {
                Some(known) => known.from = change.from,
                None => changes.push(change),
            }
        }
        if part.begins_ms.is_some_and(|begins| begins < since_ms) || end.offset > 0 {
            break;
        }
    }
    Ok(PackageLogs {
        changes: exists.then_some(changes),
        is_cut,
    })
}
