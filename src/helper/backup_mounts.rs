//! Mounts the disk or the share of a place for backups, and unmounts it.

use std::path::Path;

use crate::config::BackupStore;
use crate::exec::{Ending, TargetName};
use crate::sys::files::private_dir;

use super::{
    answers::to_its_end,
    backup_places::{Target, is_mounted, named, no_state, private},
    house::House,
    programs::find,
    pump::Pump,
    refusal::Refusal,
    tools::{self, Tool},
};

/// What nothing on a disk of somebody else's can do.
const HARMLESS: &str = "nosuid,nodev,noexec";

/// Mounts the disk or share of one; nothing when it is mounted already.
pub async fn mount(house: &House, pump: &mut Pump, name: &TargetName) -> Result<Ending, Refusal> {
    let target = named(house, name)?;
    let place = to_be_mounted(&target)?.to_owned();
    if is_mounted(&place) {
        return Ok(Ending::Exited { code: 0 });
    }
    let mut args: Vec<String> = match &target.store {
        BackupStore::Share { share, credentials } => {
            private(credentials)?;
            find("mount.cifs")?;
            let options =
                format!("credentials={credentials},file_mode=0600,dir_mode=0700,{HARMLESS}");
            ["-t", "cifs", "-o", &options, "--source", share]
                .map(str::to_owned)
                .into()
        }
        // Programs beside the kernel's own file systems would have to stay.
        BackupStore::Disk(source) => ["-i", "-o", HARMLESS, "--source", source]
            .map(str::to_owned)
            .into(),
        BackupStore::Directory(_) | BackupStore::Restic { .. } => Vec::new(),
    };
    let made = place.clone();
    to_its_end(move || private_dir(&made).map_err(|e| Refusal::failed(e.to_string()))).await?;
    args.extend(["--target".to_owned(), place.display().to_string()]);
    let tool = Tool {
        name: "mount",
        args,
    };
    tools::carry(&tool, pump, &house.strays).await
}

/// Unmounts it; nothing when it is not mounted.
pub async fn unmount(house: &House, pump: &mut Pump, name: &TargetName) -> Result<Ending, Refusal> {
    let target = named(house, name)?;
    let place = to_be_mounted(&target)?;
    if !is_mounted(place) {
        return Ok(Ending::Exited { code: 0 });
    }
    let tool = Tool {
        name: "umount",
        args: vec!["--".to_owned(), place.display().to_string()],
    };
    tools::carry(&tool, pump, &house.strays).await
}

fn to_be_mounted(target: &Target) -> Result<&Path, Refusal> {
    match (&target.store, target.mount_place()) {
        (BackupStore::Disk(_) | BackupStore::Share { .. }, None) => Err(no_state()),
        (_, Some(place)) => Ok(place),
        _ => {
            let name = &target.name;
            let message = format!(
                "backup target '{name}' is neither a disk nor a share; nothing is mounted for it"
            );
            Err(Refusal::bad_command(message))
        }
    }
}
