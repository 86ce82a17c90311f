//! Prints where the files of a container are, and where they could be moved.

use gatewren_wire::operations::{ContainerRef, OperationEnd};

use crate::context::operation_context::OperationContext;
use crate::disk_space::measure::size_of;
use crate::lxc::paths::require_plain_lxc;
use crate::lxc::relocation;
use crate::lxc::storage::{RootStorage, facts, places, root_storage};
use crate::processes::answers::line;
use crate::processes::printing::print;
use crate::processes::step_error::StepError;

/// Prints where a container's files are and where they could be moved.
pub async fn print_storage(
    context: &mut OperationContext<'_>,
    container: &ContainerRef,
) -> Result<OperationEnd, StepError> {
    let helper = context.helper;
    let config = require_plain_lxc(helper, container)?;
    let storage = root_storage(&config);
    let bytes = match &storage {
        RootStorage::Directory(root) => {
            let root = root.to_string_lossy().into_owned();
            let counted = context.relay.wait(size_of(&root, &helper.orphans)).await?;
            counted.ok()
        }
        RootStorage::Other(_) => None,
    };
    let (places, container) = (places(helper), container.clone());
    let directory = helper.containers.definitions().directory(&container);
    let read = move || {
        let mut facts = facts(&places, &container, &storage, bytes);
        let old = relocation::old_copy(&directory);
        facts.old_copy = old.map(|path| path.display().to_string());
        Ok(line(&facts))
    };
    Ok(print(context.relay, read).await?)
}
