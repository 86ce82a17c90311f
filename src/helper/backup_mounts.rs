//! Mounts the disk or the share of a place for backups, and unmounts it.

use std::path::Path;

use crate::config::BackupStore;
use crate::exec::{Ending, KillReason, TargetName};
use crate::sys::files::private_dir;

use super::{
    answers::to_its_end,
    backup_places::{Target, is_mounted, named, no_state, private, silent},
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
    let at = place.display().to_string();
    let (program, args) = match &target.store {
        BackupStore::Share { share, credentials } => {
            private(credentials)?;
            let options =
                format!("credentials={credentials},file_mode=0600,dir_mode=0700,{HARMLESS}");
            // By itself: what is killed when nobody waits any more is then what waits for the server, and not mount(8).
            (
                "mount.cifs",
                vec![share.clone(), at, "-o".to_owned(), options],
            )
        }
        // Programs beside the kernel's own file systems would have to stay.
        BackupStore::Disk(source) => {
            let args = ["-i", "-o", HARMLESS, "--source", source, "--target", &at];
            ("mount", args.map(str::to_owned).into())
        }
        BackupStore::Directory(_) | BackupStore::Restic { .. } => return Err(no_state()),
    };
    find(program)?;
    to_its_end(move || private_dir(&place).map_err(|e| Refusal::failed(e.to_string()))).await?;
    let tool = Tool {
        name: program,
        args,
    };
    carried(house, pump, (name, &tool)).await
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
    carried(house, pump, (name, &tool)).await
}

/// What is out of time is somebody else's server or disk, not the program.
async fn carried(
    house: &House,
    pump: &mut Pump,
    (name, tool): (&TargetName, &Tool),
) -> Result<Ending, Refusal> {
    match tools::carry(tool, pump, &house.strays).await? {
        Ending::Killed {
            why: KillReason::Timeout,
        } => Err(silent(name)),
        ending => Ok(ending),
    }
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
