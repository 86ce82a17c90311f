//! Adds and removes backup targets: directories below the `backup_roots` of the owner's policy file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gatewren_base::config::HELPER_POLICY_FILE;
use gatewren_base::sys::files::{private_dir, write_private};
use gatewren_wire::operations::{OperationEnd, OperationRefusal, TargetName};

use super::targets::{ADDED, ADDED_BYTES, added, all, find_target, no_state, own};
use crate::context::helper_context::HelperContext;
use crate::processes::answers::to_its_end;
use crate::processes::commands::require_root;

/// Adds a target: a directory below one of `backup_roots`.
pub async fn add(
    helper: &HelperContext,
    name: &TargetName,
    root: Option<&str>,
) -> Result<OperationEnd, OperationRefusal> {
    require_root()?;
    let policy = helper.policy.now();
    let root = match root {
        None => policy.backup_roots.first(),
        Some(root) => policy.backup_roots.iter().find(|known| *known == root),
    };
    let root = root.cloned().ok_or_else(|| {
        let message = format!(
            "a backup target can only be added below a directory in backup_roots of {HELPER_POLICY_FILE}; only the \
             owner of this server can change that"
        );
        OperationRefusal::bad_command(message)
    })?;
    if all(helper).iter().any(|known| known.name == *name) {
        let message = format!("backup target '{name}' already exists; choose another name");
        return Err(OperationRefusal::bad_command(message));
    }
    let place = PathBuf::from(format!("{root}/{name}"));
    change(helper, name.clone(), move |all, name| {
        own(Path::new(&root))?;
        private_dir(&place).map_err(|e| OperationRefusal::failed(e.to_string()))?;
        own(&place)?;
        all.insert(name, root);
        Ok(())
    })
    .await
}

/// Removes an added target; its backups stay.
pub async fn forget(
    helper: &HelperContext,
    name: &TargetName,
) -> Result<OperationEnd, OperationRefusal> {
    if find_target(helper, name)?.of_the_owner {
        let message = format!(
            "backup target '{name}' is set in {HELPER_POLICY_FILE}; only the owner of this server can remove it"
        );
        return Err(OperationRefusal::bad_command(message));
    }
    change(helper, name.clone(), |all, name| {
        all.remove(&name);
        Ok(())
    })
    .await
}

/// Changes the list of added targets and writes its file.
async fn change(
    helper: &HelperContext,
    name: TargetName,
    change: impl FnOnce(&mut BTreeMap<TargetName, String>, TargetName) -> Result<(), OperationRefusal>
    + Send
    + 'static,
) -> Result<OperationEnd, OperationRefusal> {
    let state = helper.state.clone().ok_or_else(no_state)?;
    let mut all = added(helper);
    to_its_end(move || {
        change(&mut all, name)?;
        let bytes = serde_json::to_vec(&all).unwrap_or_default();
        if bytes.len() > ADDED_BYTES {
            let message = "the limit of backup targets is reached; remove one first";
            return Err(OperationRefusal::failed(message));
        }
        let written = private_dir(&state).and_then(|()| write_private(&state.join(ADDED), &bytes));
        written.map_err(|e| OperationRefusal::failed(e.to_string()))
    })
    .await?;
    Ok(OperationEnd::SUCCESS)
}
