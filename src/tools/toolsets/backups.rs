//! `backup_*`: backups of containers and of the host's directories.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::bounded_number::BoundedNumber;
use super::failure::failed;
use super::long_call::call_job;
use gatewren_host::backends::{
    Backup, BackupId, BackupKeep, BackupSubject, Backups, BackupsView, ContainerRef, CreatedBackup,
    DeletedBackup, NewBackup, RestoredContainer, TargetName, UnreadableTarget, VerifiedBackup,
};
use gatewren_wire::registry::{
    Cx, HelperClass, Interruption, Result, Risk, Scope, ToolError, Toolset,
};

const TARGET: &[(&str, &str)] = &[("targetId", "target")];
const PASSWORD: &[&str] = &["password"];

/// The toolset.
pub fn tools(backups: Arc<Backups>) -> Toolset<Backups> {
    const OF_PACKAGE: &[(&str, &str)] = &[("targetId", "target"), ("packageIds", "container")];
    let copies = Toolset::new(backups)
        .with_name("backup")
        .tool("backup_create", Risk::Write, create)
        .about(Scope::HostOr("container"))
        .through(HelperClass::Backup)
        .titled("Create a backup")
        .startos("backup.create", OF_PACKAGE)
        .refusing_secrets(&["password", "oldPassword"])
        .long()
        .tool("backup_restore", Risk::Disrupt, restore)
        .about(Scope::HostOr("container"))
        .makes_target()
        .through(HelperClass::Backup)
        .titled("Restore a backup")
        .startos("package.backup.restore", OF_PACKAGE)
        .refusing_secrets(PASSWORD)
        .syncs_state()
        .long()
        .tool("backup_list", Risk::Read, list)
        .about(Scope::Within)
        .through(HelperClass::Backup)
        .titled("List backups")
        .startos("backup.target.info", TARGET)
        .ignoring_arguments(&[("serverId", "string")])
        .refusing_secrets(PASSWORD)
        .tool("backup_verify", Risk::Read, verify)
        .about(Scope::Within)
        .through(HelperClass::Backup)
        .titled("Verify a backup")
        .long()
        .tool("backup_delete", Risk::Disrupt, delete)
        .about(Scope::Within)
        .through(HelperClass::BackupDelete)
        .titled("Delete a backup")
        .long();
    super::backup_targets::add_to(copies)
}

fn view(backups: &Backups, cx: &Cx) -> BackupsView {
    backups.view_for(&cx.caller().reach, cx.reference())
}

/// Back up a container (files, settings, volumes) or a host directory that the owner allows. A running container is
/// frozen meanwhile; other mounts are not included. `backup_target_list` lists targets, `backup_restore` restores.
///
/// With `keep`, older backups are then deleted.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Create {
    /// The target to store the backup on.
    target: TargetName,
    /// The container to back up. Give this or `path`.
    #[serde(default, deserialize_with = "one_alone")]
    container: Option<ContainerRef>,
    /// The absolute path of the host directory or file to back up.
    path: Option<String>,
    /// Whether to freeze a running container meanwhile.
    #[serde(default = "yes")]
    freeze: bool,
    /// Which backups of this container or path to keep on the target, such as `{"daily":7,"weekly":4}`; default: all.
    ///
    /// Others are deleted after the new one was read back.
    keep: Option<BackupKeep>,
}

/// Accepts a name or a list of one, as `StartOS` clients send it.
fn one_alone<'de, D: Deserializer<'de>>(
    from: D,
) -> std::result::Result<Option<ContainerRef>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Form {
        Name(String),
        List([String; 1]),
    }
    let Some(Form::Name(name) | Form::List([name])) = Option::<Form>::deserialize(from)? else {
        return Ok(None);
    };
    name.parse().map(Some).map_err(D::Error::custom)
}

fn yes() -> bool {
    true
}

async fn create(backups: Arc<Backups>, asked: Create, cx: Cx) -> Result<CreatedBackup> {
    let backup = NewBackup {
        target: asked.target,
        subject: subject(asked.container, asked.path)?,
        freeze: asked.freeze,
        keep: asked.keep,
    };
    let view = view(&backups, &cx);
    let created = view.create(backup, call_job(&cx)).await;
    created.map_err(failed)
}

/// Restore a backup: replace its stopped container, which loses later changes, or create a new LXC container or host
/// directory. `container_stop` stops the container, `container_start` starts it.
///
/// Every byte is checked, and nothing changes until the copy is complete. Returns what was restored.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Restore {
    /// The target that holds the backup.
    target: TargetName,
    /// The backup's id, as `backup_list` shows it; default: the container's newest on that target.
    backup: Option<BackupId>,
    /// The container to restore to: its own, or for LXC a new name. Give this or `path`.
    #[serde(default, deserialize_with = "one_alone")]
    container: Option<ContainerRef>,
    /// The absolute path of the new host directory to restore to, where the owner allows writing.
    path: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[expect(
    clippy::struct_field_names,
    reason = "`backup_create` has `not_included`"
)]
struct Restored {
    /// The backup that was restored.
    backup: BackupId,
    /// The container that it was restored to.
    #[serde(skip_serializing_if = "Option::is_none")]
    container: Option<ContainerRef>,
    /// The directory that it was restored to.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// Parts of the backup that were left as they are, with the reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_restored: Vec<String>,
}

async fn restore(backups: Arc<Backups>, asked: Restore, cx: Cx) -> Result<Restored> {
    let (container, path) = (asked.container, asked.path);
    let subject = subject(container.clone(), path.clone())?;
    let view = view(&backups, &cx);
    let backup = match (asked.backup, &container) {
        (Some(backup), _) => backup,
        (None, Some(container)) => newest(&view, &asked.target, container).await?,
        (None, None) => {
            let words = "`backup` is required without `container`";
            let hint = "Nothing was done. backup_list lists the backups.";
            return Err(ToolError::new(words).hint(hint).into());
        }
    };
    let restore = view.restore(asked.target, backup.clone(), subject, call_job(&cx));
    let RestoredContainer { not_restored } = restore.await.map_err(failed)?;
    Ok(Restored {
        backup,
        container,
        path,
        not_restored,
    })
}

/// Returns the newest backup of a container.
async fn newest(
    view: &BackupsView,
    target: &TargetName,
    container: &ContainerRef,
) -> Result<BackupId> {
    let list = view.list(Some(target.clone())).await.map_err(failed)?;
    let mut own = list.backups.into_iter().map(|backup| backup.backup);
    own.find(|backup| backup.container() == Some(container))
        .ok_or_else(|| {
            let words = format!("no backup of '{container}' found on '{target}'");
            let hint = "Nothing was done. backup_list lists the backups.";
            ToolError::new(words).hint(hint).into()
        })
}

/// Returns the subject: a container or a path, and not both.
fn subject(
    container: Option<ContainerRef>,
    path: Option<String>,
) -> std::result::Result<BackupSubject, Interruption> {
    /// The maximum length of a path (`PATH_MAX` without its NUL).
    const PATH_BYTES: usize = 4095;
    match (container, path) {
        (Some(container), None) => Ok(BackupSubject::Container(container)),
        (None, Some(path)) if path.len() <= PATH_BYTES => Ok(BackupSubject::Path(path)),
        (None, Some(_)) => Err(ToolError::new("`path` is longer than 4095 bytes")
            .hint("Nothing was done.")
            .into()),
        _ => Err(ToolError::new("give either `container` or `path`")
            .hint("Nothing was done.")
            .into()),
    }
}

/// List backups, newest first: the container or path, the time, the size, and whether the container was running.
/// `backup_verify` checks one, `backup_restore` restores it.
///
/// Only complete backups are listed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {
    /// Only backups on this target.
    target: Option<TargetName>,
    /// Only backups of this container.
    container: Option<ContainerRef>,
    /// How many to skip: `next_offset` of the previous answer.
    #[serde(default)]
    offset: u32,
    /// How many to return, 1 to 100.
    #[serde(default)]
    limit: BoundedNumber<1, 100, 50>,
}

#[derive(Serialize, JsonSchema)]
struct Listed {
    /// The backups, newest first.
    backups: Vec<Backup>,
    /// The total number of backups.
    total: usize,
    /// The offset of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u32>,
    /// Whether there are older backups that `total` does not count.
    truncated: bool,
    /// Targets that could not be read.
    unseen: Vec<UnreadableTarget>,
}

async fn list(backups: Arc<Backups>, asked: List, cx: Cx) -> Result<Listed> {
    let found = view(&backups, &cx).list(asked.target).await;
    let mut found = found.map_err(failed)?;
    if let Some(container) = &asked.container {
        let is_of = |backup: &Backup| backup.container.as_ref() == Some(container);
        found.backups.retain(is_of);
    }
    let total = found.backups.len();
    let next = asked.offset.saturating_add(asked.limit.get());
    let backups = found.backups.into_iter().skip(asked.offset as usize);
    Ok(Listed {
        backups: backups.take(asked.limit.get() as usize).collect(),
        total,
        next_offset: ((next as usize) < total).then_some(next),
        truncated: found.truncated,
        unseen: found.unseen,
    })
}

/// Verify a backup: read all of it and return whether every byte is as written and the archive is readable.
/// `backup_list` lists backups, `backup_restore` restores one.
///
/// If not, `problem` has the reason. Nothing is changed; a large backup takes time.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Verify {
    /// The target that holds the backup.
    target: TargetName,
    /// The backup's id, as `backup_list` shows it.
    backup: BackupId,
}

async fn verify(backups: Arc<Backups>, asked: Verify, cx: Cx) -> Result<VerifiedBackup> {
    let view = view(&backups, &cx);
    let check = view.verify(asked.target, asked.backup, call_job(&cx));
    check.await.map_err(failed)
}

/// Delete a backup and return its id. This cannot be undone. `backup_list` lists backups; `keep` of `backup_create`
/// deletes old ones by a rule.
///
/// Other backups are unchanged.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Delete {
    /// The target that holds the backup.
    target: TargetName,
    /// The backup's id, as `backup_list` shows it.
    backup: BackupId,
}

async fn delete(backups: Arc<Backups>, asked: Delete, cx: Cx) -> Result<DeletedBackup> {
    let view = view(&backups, &cx);
    let deleted = view.delete(asked.target, asked.backup, call_job(&cx));
    deleted.await.map_err(failed)
}
