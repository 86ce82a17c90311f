//! Checks the age of the newest backup.

use super::finding::Finding;
use gatewren_base::config::Reach;
use gatewren_base::sys::{moment_ms, now_ms};
use gatewren_host::backends::Backups;
use gatewren_host::helper_client::HelperClient;

/// An older backup is reported.
const OLD_MS: u64 = 8 * 86_400_000;

/// Looks through this helper. A server whose first agent is newer than an old backup need not have one yet.
pub async fn look(helper: &HelperClient, first_agent_ms: Option<u64>) -> Finding {
    const CHECK: &str = "backups";
    if !Backups::are_here() {
        let seen = "no program to create backups is installed: rsync with zstd and tar, or restic";
        return Finding::skipped(CHECK, seen).with("apt install rsync zstd, or restic");
    }
    let view = Backups::new(helper.clone()).view_for(&Reach::everything(), "gatewren doctor");
    let list = match view.list(None).await {
        Ok(list) => list,
        Err(cause) => return Finding::skipped(CHECK, cause.message),
    };
    if let Some(unseen) = list.unseen.first() {
        let seen = format!(
            "cannot read the target {}: {}",
            unseen.target, unseen.obstacle
        );
        return Finding::warning(CHECK, seen, "gatewren(8), helper.toml(5): [backup]");
    }
    let Some(newest) = list
        .backups
        .iter()
        .filter_map(|one| moment_ms(&one.made))
        .max()
    else {
        let age = first_agent_ms.map_or(0, |first| now_ms().saturating_sub(first));
        let finding = if age > OLD_MS {
            Finding::warning
        } else {
            Finding::later
        };
        return finding(
            CHECK,
            "there is no backup",
            "add a target to helper.toml, then let an agent call backup_create, or approve its proposal in the inbox",
        );
    };
    let days = now_ms().saturating_sub(newest) / 86_400_000;
    if now_ms().saturating_sub(newest) > OLD_MS {
        let seen = format!("the newest backup is {days} days old");
        return Finding::warning(CHECK, seen, "create one with backup_create");
    }
    let count = list.backups.len();
    Finding::good(
        CHECK,
        format!("{count} backups; the newest is {days} days old"),
    )
}
