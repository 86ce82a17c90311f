//! `backup_*`: backups of containers and of the host's directories, and the places where they are kept.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::{failure::failed, long::keep, number::Number};
use crate::backends::{
    Backup, BackupId, BackupSubject, BackupTarget, Backups, BackupsView, ContainerName, TargetName,
    UnseenTarget, Verified,
};
use crate::registry::{Cx, HelperClass, Interruption, Result, Risk, Scope, ToolError, Toolset};

const TARGET: &[(&str, &str)] = &[("targetId", "target")];
const PASSWORD: &[&str] = &["password"];

/// The group, as a table.
pub fn tools(backups: Arc<Backups>) -> Toolset<Backups> {
    const OF_PACKAGE: &[(&str, &str)] = &[("targetId", "target"), ("packageIds", "container")];
    let copies = Toolset::over(backups)
        .named("backup")
        .tool("backup_create", Risk::Write, create)
        .about(Scope::HostOr("container"))
        .through(HelperClass::Backup)
        .titled("Make a backup")
        .startos("backup.create", OF_PACKAGE)
        .refusing_secrets(&["password", "oldPassword"])
        .long()
        .tool("backup_restore", Risk::Disrupt, restore)
        .about(Scope::HostOr("container"))
        .makes_target()
        .through(HelperClass::Backup)
        .titled("Bring a backup back")
        .startos("package.backup.restore", OF_PACKAGE)
        .refusing_secrets(PASSWORD)
        .syncs_state()
        .long()
        .tool("backup_list", Risk::Read, list)
        .about(Scope::Within)
        .through(HelperClass::Backup)
        .titled("List backups")
        .startos("backup.target.info", TARGET)
        .leaving_aside(&[("serverId", "string")])
        .refusing_secrets(PASSWORD)
        .tool("backup_verify", Risk::Read, verify)
        .about(Scope::Within)
        .through(HelperClass::Backup)
        .titled("Check a backup")
        .long();
    with_places(copies)
}

fn with_places(copies: Toolset<Backups>) -> Toolset<Backups> {
    copies
        .tool("backup_target_list", Risk::Read, targets)
        .about(Scope::Within)
        .through(HelperClass::Backup)
        .titled("Places for backups")
        .startos("backup.target.list", &[])
        .tool("backup_target_add", Risk::Persist, add)
        .about(Scope::Host)
        .through(HelperClass::Backup)
        .titled("Add a place for backups")
        .tool("backup_target_remove", Risk::Disrupt, remove)
        .about(Scope::Host)
        .through(HelperClass::Backup)
        .titled("Forget a place for backups")
        .startos("backup.target.cifs.remove", &[("id", "target")])
        .tool("backup_target_mount", Risk::Write, mount)
        .about(Scope::Host)
        .through(HelperClass::Backup)
        .titled("Mount a place for backups")
        .startos("backup.target.mount", TARGET)
        .leaving_aside(&[("serverId", "string"), ("allowPartial", "boolean")])
        .refusing_secrets(PASSWORD)
        .tool("backup_target_umount", Risk::Write, umount)
        .about(Scope::Host)
        .through(HelperClass::Backup)
        .titled("Unmount a place for backups")
        .startos("backup.target.umount", TARGET)
}

fn view(backups: &Backups, cx: &Cx) -> BackupsView {
    backups.seen_by(&cx.caller().reach, cx.reference())
}

/// Backs up a container, files and settings, or a directory of the host that the owner lets be backed up, to a target,
/// and returns what was made. A container that runs stands still meanwhile and goes on afterwards; what is mounted into
/// it is not part of it. A backup that is broken off leaves nothing behind. `backup_target_list` names the targets,
/// `backup_verify` checks a backup, `backup_restore` brings it back.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Create {
    /// Where it is kept.
    target: TargetName,
    /// The container. Give this or `path`.
    #[serde(default, deserialize_with = "one_alone")]
    container: Option<ContainerName>,
    /// The absolute path of the directory or file of the host.
    path: Option<String>,
    /// Whether a container that runs stands still meanwhile. Without it files may be half old and half new.
    #[serde(default = "yes")]
    freeze: bool,
}

/// A name, or a list of one, as clients of `StartOS` write it.
fn one_alone<'de, D: Deserializer<'de>>(
    from: D,
) -> std::result::Result<Option<ContainerName>, D::Error> {
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

async fn create(backups: Arc<Backups>, asked: Create, cx: Cx) -> Result<Backup> {
    let subject = subject(asked.container, asked.path)?;
    let view = view(&backups, &cx);
    let made = view.create(asked.target, (subject, asked.freeze), keep(&cx));
    made.await.map_err(failed)
}

/// Brings a backup back, once every byte of it is found as it was written: as the container that it is of, which must be
/// stopped (`container_stop`) and loses what came later; as a new container with a free `container` name, with hardware
/// addresses and a host name of its own; or one of the host to a new directory. Nothing is changed before the copy is
/// whole, and a damaged backup is refused. Returns what was brought back; `container_start` starts the container.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Restore {
    /// Where the backup is.
    target: TargetName,
    /// Its id, as `backup_list` shows it; the newest of the container there when absent.
    backup: Option<BackupId>,
    /// The container that it becomes. Give this or `path`.
    #[serde(default, deserialize_with = "one_alone")]
    container: Option<ContainerName>,
    /// The absolute path of the new directory of the host that it becomes, where the owner lets files be written.
    path: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Restored {
    /// What was brought back.
    backup: BackupId,
    /// The container that it is now.
    #[serde(skip_serializing_if = "Option::is_none")]
    container: Option<ContainerName>,
    /// The directory that it is now.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
}

async fn restore(backups: Arc<Backups>, asked: Restore, cx: Cx) -> Result<Restored> {
    let (container, path) = (asked.container, asked.path);
    let subject = subject(container.clone(), path.clone())?;
    let view = view(&backups, &cx);
    let backup = match (asked.backup, &container) {
        (Some(backup), _) => backup,
        (None, Some(container)) => newest(&view, &asked.target, container).await?,
        (None, None) => {
            let words = "say which `backup` is to be brought back";
            let hint = "Nothing was done. backup_list names those that there are.";
            return Err(ToolError::new(words).hint(hint).into());
        }
    };
    let done = view.restore(asked.target, (backup.clone(), subject), keep(&cx));
    done.await.map_err(failed)?;
    Ok(Restored {
        backup,
        container,
        path,
    })
}

/// The newest backup of a container.
async fn newest(
    view: &BackupsView,
    target: &TargetName,
    container: &ContainerName,
) -> Result<BackupId> {
    let list = view.list(Some(target.clone())).await.map_err(failed)?;
    let mut own = list.backups.into_iter().map(|backup| backup.backup);
    own.find(|backup| backup.container() == Some(container))
        .ok_or_else(|| {
            let words = format!("there is no backup of '{container}' on '{target}'");
            let hint = "Nothing was done. backup_list names those that there are.";
            ToolError::new(words).hint(hint).into()
        })
}

/// What is meant: a container or a path, and not both.
fn subject(
    container: Option<ContainerName>,
    path: Option<String>,
) -> std::result::Result<BackupSubject, Interruption> {
    /// The longest path (`PATH_MAX` without its NUL).
    const PATH_BYTES: usize = 4095;
    match (container, path) {
        (Some(container), None) => Ok(BackupSubject::Container(container)),
        (None, Some(path)) if path.len() <= PATH_BYTES => Ok(BackupSubject::Path(path)),
        (None, Some(_)) => Err(ToolError::new("`path` is longer than any path")
            .hint("Nothing was done.")
            .into()),
        _ => Err(ToolError::new("give either `container` or `path`")
            .hint("Nothing was done.")
            .into()),
    }
}

/// Lists backups, the newest first: what each is of, when it was made, its size, and whether the container was running.
/// Only whole ones are listed. `backup_verify` checks one, `backup_restore` brings it back.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {
    /// Only those on this target.
    target: Option<TargetName>,
    /// Only those of this container.
    container: Option<ContainerName>,
    /// How many to pass over: `next_offset` of the answer before.
    #[serde(default)]
    offset: u32,
    /// How many to tell, 1 to 100.
    #[serde(default)]
    limit: Number<1, 100, 50>,
}

#[derive(Serialize, JsonSchema)]
struct Listed {
    /// The newest first.
    backups: Vec<Backup>,
    /// How many there are in all.
    total: usize,
    /// Where to go on; absent when this was the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u32>,
    /// Whether there are older ones that are not even counted.
    truncated: bool,
    /// Targets that could not be looked at.
    unseen: Vec<UnseenTarget>,
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
    let told = found.backups.into_iter().skip(asked.offset as usize);
    Ok(Listed {
        backups: told.take(asked.limit.get() as usize).collect(),
        total,
        next_offset: ((next as usize) < total).then_some(next),
        truncated: found.truncated,
        unseen: found.unseen,
    })
}

/// Reads a backup from beginning to end, and says whether every byte is as it was written and the archive can be read;
/// where not, `problem` says what is wrong. Nothing is changed, and large ones take their time. `backup_list` names the
/// backups, `backup_restore` brings one back.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Verify {
    /// Where it is.
    target: TargetName,
    /// Its id, as `backup_list` shows it.
    backup: BackupId,
}

async fn verify(backups: Arc<Backups>, asked: Verify, cx: Cx) -> Result<Verified> {
    let view = view(&backups, &cx);
    let verified = view.verify(asked.target, asked.backup, keep(&cx));
    verified.await.map_err(failed)
}

/// Lists the places where backups may be kept, with what is free there, and what is in the way of those that cannot be
/// used. `backup_target_mount` mounts a disk or a share.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Targets {}

#[derive(Serialize, JsonSchema)]
struct AllTargets {
    /// Sorted by name.
    targets: Vec<BackupTarget>,
}

async fn targets(backups: Arc<Backups>, Targets {}: Targets, cx: Cx) -> Result<AllTargets> {
    let targets = view(&backups, &cx).targets().await.map_err(failed)?;
    Ok(AllTargets { targets })
}

/// Adds a place for backups: a directory of the target's name below one that the owner names for this. The owner's own
/// places stand in a file that this server cannot write. Returns it as `backup_target_list` does.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Add {
    /// Its name, and the directory's.
    target: TargetName,
    /// Below which of the owner's directories; the first when absent.
    root: Option<String>,
}

async fn add(backups: Arc<Backups>, asked: Add, cx: Cx) -> Result<BackupTarget> {
    let view = view(&backups, &cx);
    let (target, root) = (asked.target, asked.root);
    // Longer ones are in nobody's list.
    let root = root.map(|root| root.chars().take(4096).collect());
    view.add(target.clone(), root).await.map_err(failed)?;
    one(&view, &target).await
}

/// Forgets a place for backups that was added here; the backups in it stay where they are, and `backup_target_add` of the
/// same name shows them again. The owner's own places cannot be removed. Returns the name.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Remove {
    /// Its name.
    target: TargetName,
}

#[derive(Serialize, JsonSchema)]
struct Removed {
    /// What is no target any more.
    target: TargetName,
}

async fn remove(backups: Arc<Backups>, Remove { target }: Remove, cx: Cx) -> Result<Removed> {
    let view = view(&backups, &cx);
    view.remove(target.clone()).await.map_err(failed)?;
    Ok(Removed { target })
}

/// Mounts the disk or the share of a backup target, where only root sees it; one that is mounted stays so, and what is
/// not there cannot be mounted. Returns the target as `backup_target_list` does.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Mount {
    /// Its name.
    target: TargetName,
}

async fn mount(backups: Arc<Backups>, Mount { target }: Mount, cx: Cx) -> Result<BackupTarget> {
    switch(&view(&backups, &cx), target, true).await
}

/// Unmounts the disk or the share of a backup target, so that it can be taken away; it fails while a backup is written or
/// read there. Returns the target as `backup_target_list` does; `backup_target_mount` mounts it again.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Umount {
    /// Its name.
    target: TargetName,
}

async fn umount(backups: Arc<Backups>, Umount { target }: Umount, cx: Cx) -> Result<BackupTarget> {
    switch(&view(&backups, &cx), target, false).await
}

async fn switch(view: &BackupsView, target: TargetName, mounted: bool) -> Result<BackupTarget> {
    let done = view.set_mounted(target.clone(), mounted).await;
    done.map_err(failed)?;
    one(view, &target).await
}

async fn one(view: &BackupsView, name: &TargetName) -> Result<BackupTarget> {
    let mut all = view.targets().await.map_err(failed)?.into_iter();
    let found = all.find(|target| target.target == *name);
    found.ok_or_else(|| ToolError::new("the target has gone again").into())
}
