//! What can be deleted on the host itself: apt's cache, the journal's oldest entries, old kernels and core dumps.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;

use gatewren_wire::operations::{
    CleanupFinding, CleanupItem, DUMP_DIRECTORIES, DumpPath, OperationRefusal, PackageName,
};

use super::kernels::old_kernels;
use super::measure::size_of;
use crate::context::orphans::Orphans;
use crate::context::programs::find;

/// Where apt keeps the packages that it downloaded.
pub const APT_CACHE: &str = "/var/cache/apt";

/// Where the journal is kept over restarts.
pub const JOURNAL: &str = "/var/log/journal";

/// How much of the journal is kept, in bytes, as an argument of `journalctl`.
pub const JOURNAL_KEPT: u64 = 200 << 20;

/// The least size of a cache that is reported: clearing less makes no difference.
const LEAST_CACHE: u64 = 1 << 20;

/// The most core dumps that are reported, the largest.
const MAX_DUMPS: usize = 100;

/// Returns what can be deleted. What cannot be read is left out.
pub async fn host_items(orphans: &Arc<Orphans>) -> Vec<CleanupFinding> {
    let (apt_cache, journal, kernels) = tokio::join!(
        async {
            find("apt-get")?;
            apt_cache(orphans).await
        },
        async {
            find("journalctl")?;
            journal(orphans).await
        },
        async {
            find("dpkg-query")?;
            kernels(orphans).await
        },
    );
    let mut items = Vec::new();
    items.extend(apt_cache.ok().filter(is_worth_it));
    items.extend(journal.ok().filter(is_worth_it));
    items.extend(kernels.unwrap_or_default());
    items.extend(dumps());
    items
}

fn is_worth_it(item: &CleanupFinding) -> bool {
    item.bytes >= LEAST_CACHE
}

/// Returns apt's cache.
pub async fn apt_cache(orphans: &Arc<Orphans>) -> Result<CleanupFinding, OperationRefusal> {
    Ok(CleanupFinding {
        id: CleanupItem::AptCache,
        bytes: size_of(APT_CACHE, orphans).await?,
        path: Some(APT_CACHE.to_owned()),
        why: "downloaded packages; apt downloads them again when needed".to_owned(),
        irreversible: false,
    })
}

/// Returns what the journal has more than is kept.
pub async fn journal(orphans: &Arc<Orphans>) -> Result<CleanupFinding, OperationRefusal> {
    let kept = JOURNAL_KEPT >> 20;
    Ok(CleanupFinding {
        id: CleanupItem::Journal,
        bytes: size_of(JOURNAL, orphans)
            .await?
            .saturating_sub(JOURNAL_KEPT),
        path: Some(JOURNAL.to_owned()),
        why: format!("the oldest entries of the journal; the newest {kept} MiB stay"),
        irreversible: true,
    })
}

/// Returns the old kernels.
async fn kernels(orphans: &Arc<Orphans>) -> Result<Vec<CleanupFinding>, OperationRefusal> {
    let old = old_kernels(orphans).await?.into_iter();
    Ok(old
        .map(|kernel| {
            let packages: Vec<&str> = kernel.packages.iter().map(PackageName::as_str).collect();
            CleanupFinding {
                id: CleanupItem::OldKernel(kernel.release),
                bytes: kernel.bytes,
                path: None,
                why: format!(
                    "neither the running kernel nor the newest; removes {}",
                    packages.join(" ")
                ),
                irreversible: false,
            }
        })
        .collect())
}

/// Returns the core dumps and crash reports, largest first.
fn dumps() -> Vec<CleanupFinding> {
    let mut found: Vec<CleanupFinding> = DUMP_DIRECTORIES
        .iter()
        .flat_map(|folder| fs::read_dir(folder).into_iter().flatten())
        .filter_map(|entry| dump(entry.ok()?.path().to_str()?.parse().ok()?))
        .collect();
    found.sort_by(|a, b| (b.bytes, &a.id).cmp(&(a.bytes, &b.id)));
    found.truncate(MAX_DUMPS);
    found
}

/// Returns a core dump, if it is a regular file.
pub fn dump(path: DumpPath) -> Option<CleanupFinding> {
    let facts = fs::symlink_metadata(Path::new(path.as_str())).ok()?;
    facts.is_file().then(|| CleanupFinding {
        bytes: facts.blocks().saturating_mul(512),
        path: Some(path.to_string()),
        id: CleanupItem::CoreDump(path),
        why: "the memory of a program that crashed, for a debugger".to_owned(),
        irreversible: true,
    })
}
