//! `backup_target_*`: where backups are stored.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::failure::failed;
use gatewren_host::backends::{BackupTarget, Backups, BackupsView, TargetName};
use gatewren_wire::registry::{Cx, HelperClass, Result, Risk, Scope, ToolError, Toolset};

const TARGET: &[(&str, &str)] = &[("targetId", "target")];
const PASSWORD: &[&str] = &["password"];

/// Adds the rows of backup targets.
pub(super) fn add_to(copies: Toolset<Backups>) -> Toolset<Backups> {
    copies
        .tool("backup_target_list", Risk::Read, targets)
        .about(Scope::Within)
        .through(HelperClass::Backup)
        .titled("List backup targets")
        .startos("backup.target.list", &[])
        .tool("backup_target_add", Risk::Persist, add)
        .about(Scope::Host)
        .through(HelperClass::Backup)
        .titled("Add a backup target")
        .tool("backup_target_remove", Risk::Disrupt, remove)
        .about(Scope::Host)
        .through(HelperClass::Backup)
        .titled("Remove a backup target")
        .startos("backup.target.cifs.remove", &[("id", "target")])
        .tool("backup_target_mount", Risk::Write, mount)
        .reaches_other_machines()
        .about(Scope::Host)
        .through(HelperClass::Backup)
        .titled("Mount a backup target")
        .startos("backup.target.mount", TARGET)
        .ignoring_arguments(&[("serverId", "string"), ("allowPartial", "boolean")])
        .refusing_secrets(PASSWORD)
        .tool("backup_target_umount", Risk::Write, umount)
        .about(Scope::Host)
        .through(HelperClass::Backup)
        .titled("Unmount a backup target")
        .startos("backup.target.umount", TARGET)
}

fn view(backups: &Backups, cx: &Cx) -> BackupsView {
    backups.view_for(&cx.caller().reach, cx.reference())
}

/// List the backup targets with their free space, and for each that cannot be used, the reason. `backup_target_mount`
/// mounts a disk or a share.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Targets {}

#[derive(Serialize, JsonSchema)]
struct AllTargets {
    /// The targets, sorted by name.
    targets: Vec<BackupTarget>,
}

async fn targets(backups: Arc<Backups>, Targets {}: Targets, cx: Cx) -> Result<AllTargets> {
    let targets = view(&backups, &cx).targets().await.map_err(failed)?;
    Ok(AllTargets { targets })
}

/// Add a backup target: a directory with the target's name below one that the owner configured.
///
/// The owner's own targets are in a file that this server cannot write. Returns it as `backup_target_list` does.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Add {
    /// The target's name, also the directory's.
    target: TargetName,
    /// The owner's directory to create it in; default: the first.
    root: Option<String>,
}

async fn add(backups: Arc<Backups>, asked: Add, cx: Cx) -> Result<BackupTarget> {
    let view = view(&backups, &cx);
    let (target, root) = (asked.target, asked.root);
    // No configured root is longer.
    let root = root.map(|root| root.chars().take(4096).collect());
    view.add(target.clone(), root).await.map_err(failed)?;
    one(&view, &target).await
}

/// Remove a backup target that was added here. Its backups stay where they are; `backup_target_add` with the same name
/// shows them again.
///
/// Returns the name. The owner's own targets cannot be removed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Remove {
    /// The target's name.
    target: TargetName,
}

#[derive(Serialize, JsonSchema)]
struct Removed {
    /// The target that was removed.
    target: TargetName,
}

async fn remove(backups: Arc<Backups>, Remove { target }: Remove, cx: Cx) -> Result<Removed> {
    let view = view(&backups, &cx);
    view.remove(target.clone()).await.map_err(failed)?;
    Ok(Removed { target })
}

/// Mount the disk or share of a backup target where only root sees it.
///
/// Fails if the disk or share is missing; a mounted one stays mounted. Returns the target as `backup_target_list` does.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Mount {
    /// The target's name.
    target: TargetName,
}

async fn mount(backups: Arc<Backups>, Mount { target }: Mount, cx: Cx) -> Result<BackupTarget> {
    switch(&view(&backups, &cx), target, true).await
}

/// Unmount the disk or share of a backup target, so that it can be disconnected.
///
/// Fails while a backup is written or read there. Returns the target as `backup_target_list` does;
/// `backup_target_mount` mounts it again.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Umount {
    /// The target's name.
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
    found.ok_or_else(|| ToolError::new("the target was removed by another call").into())
}
