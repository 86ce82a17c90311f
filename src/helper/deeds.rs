//! What is done to one container beside starting and stopping it, each deed by whoever knows how.

use crate::exec::{ContainerName, Deed, Ending};

use super::{
    container_files, container_logs, copies, definition, house::House, lxc::freezer,
    places::existing, pump::Pump, refusal::Refusal, snapshots, tools,
};

/// Does it; `processes` bounds what is run for it.
pub async fn perform(
    house: &House,
    pump: &mut Pump,
    (container, deed): (&ContainerName, &Deed),
    processes: u32,
) -> Result<Ending, Refusal> {
    existing(house, container)?;
    match deed {
        Deed::Freeze {} => freeze(house, pump, container, "lxc-freeze").await,
        Deed::Unfreeze {} => freeze(house, pump, container, "lxc-unfreeze").await,
        Deed::Autostart { on } => definition::autostart(house, container, *on).await,
        Deed::Configure { changes } => definition::configure(house, container, changes).await,
        Deed::Snapshots {} => snapshots::list(house, pump, container).await,
        Deed::Snapshot { comment } => {
            snapshots::make(house, pump, (container, comment.as_deref()), processes).await
        }
        Deed::Restore { snapshot } => {
            snapshots::restore(house, pump, (container, snapshot), processes).await
        }
        Deed::Forget { snapshot } => {
            snapshots::forget(house, pump, (container, snapshot), processes).await
        }
        Deed::Clone { to } => copies::clone(house, pump, (container, to), processes).await,
        Deed::Destroy { force, snapshots } => {
            copies::destroy(house, pump, (container, *force, *snapshots), processes).await
        }
        Deed::Log { log, offset, bytes } => {
            container_logs::log(house, pump, container, (*log, *offset, *bytes)).await
        }
        Deed::Journal { lines, cursor } => {
            let part = (*lines, cursor.as_deref());
            container_logs::journal(house, pump, (container, part), processes).await
        }
        Deed::ListFiles { path, after, limit } => {
            let part = (after.clone(), *limit);
            container_files::list(house, pump, (container, path), part).await
        }
        Deed::ReadFile {
            path,
            offset,
            bytes,
        } => container_files::read(house, pump, (container, path), (*offset, *bytes)).await,
        Deed::WriteFile {
            path,
            content,
            mode,
        } => container_files::write(house, (container, path), content, *mode).await,
    }
}

async fn freeze(
    house: &House,
    pump: &mut Pump,
    container: &ContainerName,
    name: &'static str,
) -> Result<Ending, Refusal> {
    house.claims.check_free(container)?;
    match pump.wait(house.containers.alive(container)).await {
        Ok(alive) => alive?,
        Err(why) => return Ok(Ending::Killed { why }),
    };
    let tool = freezer(name, container, house.containers.lxcpath());
    tools::carry(&tool, pump, &house.strays).await
}
