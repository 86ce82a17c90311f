//! Prints backups for the owner. Paths and host names are texts of others, which may not move the cursor.

use super::super::console::moment::moment_of;
use super::super::console::table::table;
use gatewren_gate::owner_actions::sanitize;
use gatewren_host::backends::{Backup, BackupId, CreatedBackup, RestoredContainer, VerifiedBackup};

/// The column headings of a list.
const HEAD: [&str; 5] = ["backup", "target", "of", "made", "bytes"];

/// The backups as a table.
pub fn list(backups: &[Backup]) -> String {
    let mut rows = vec![HEAD.map(str::to_owned)];
    rows.extend(backups.iter().map(cells));
    table(&rows)
}

fn cells(backup: &Backup) -> [String; 5] {
    let target = backup.target.as_ref().map(ToString::to_string);
    let bytes = backup.archive_bytes.map(|bytes| bytes.to_string());
    [
        backup.backup.to_string(),
        target.unwrap_or_default(),
        subject(backup),
        sanitize(&moment_of(&backup.made)),
        bytes.unwrap_or_else(|| "-".to_owned()),
    ]
}

/// The container or path that was backed up.
fn subject(backup: &Backup) -> String {
    let container = backup.container.as_ref().map(ToString::to_string);
    let path = || backup.path.as_deref().map(sanitize);
    container.or_else(path).unwrap_or_default()
}

/// A new backup, and the backups that were deleted after it.
pub fn created(created: &CreatedBackup) -> String {
    let mut lines = vec![format!("created {}", created.made.backup)];
    if created.made.changed_meanwhile {
        lines.push("some files changed while they were read".to_owned());
    }
    let left = created.made.not_included.iter();
    lines.extend(left.map(|what| format!("not included: {}", sanitize(what))));
    lines.extend(created.deleted.iter().map(|id| format!("deleted {id}")));
    let problem = created.not_deleted.as_deref();
    lines.extend(problem.map(|why| format!("older backups remain: {}", sanitize(why))));
    lines.join("\n")
}

/// The result of verifying.
pub fn verified(verified: &VerifiedBackup) -> String {
    let id = &verified.backup;
    match verified.problem.as_deref() {
        None => format!("{id} is whole: {} entries", verified.entries),
        Some(problem) => format!("{id} is damaged: {}", sanitize(problem)),
    }
}

/// A backup that was restored, and what was left as it is.
pub fn restored(backup: &BackupId, restored: &RestoredContainer) -> String {
    let mut lines = vec![format!("restored {backup}")];
    let left = restored.not_restored.iter();
    lines.extend(left.map(|what| format!("not restored: {}", sanitize(what))));
    lines.join("\n")
}
