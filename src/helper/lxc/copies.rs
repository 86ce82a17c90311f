//! Creates containers, as copies or from a template, and destroys them.

use std::fs;
use std::path::Path;

use gatewren_base::config::ContainerTemplate;
use gatewren_wire::operations::{ContainerRef, OperationEnd, OperationRefusal, RefusalCode};

use super::paths::{require_lxc, require_plain_lxc, require_stopped};
use super::{config_files, definition};
use crate::context::definitions::CONFIG;
use crate::context::helper_context::HelperContext;
use crate::context::operation_context::OperationContext;
use crate::processes::answers::to_its_end;
use crate::processes::commands::require_root;
use crate::processes::lxc_command::run;
use crate::processes::staging_dir::StagingDir;

/// Copies a stopped container to a new name, with its own hardware addresses.
pub async fn clone(
    context: &mut OperationContext<'_>,
    container: &ContainerRef,
    to: &ContainerRef,
) -> Result<OperationEnd, OperationRefusal> {
    let helper = context.helper;
    let config = require_plain_lxc(helper, container)?;
    let _claims = (helper.locks.take(container)?, helper.locks.take(to)?);
    check_new(helper, to)?;
    require_stopped(helper, container).await?;
    let lxcpath = helper.containers.lxcpath();
    let args = ["-n", container.as_str(), "-N", to.as_str()];
    if !config_files::is_directory(&config) {
        // Its storage creates such a copy in one step.
        return run(context, "lxc-copy", lxcpath, &args).await;
    }
    let stage = StagingDir::create_in(lxcpath, to.as_str()).await?;
    let place = stage.path().to_string_lossy().into_owned();
    let args = [&args[..], &["-p", &place]].concat();
    let ending = run(context, "lxc-copy", lxcpath, &args).await;
    move_into_place(helper, stage, to, ending).await
}

/// Creates a container from a template of the owner's policy file.
pub async fn create(
    context: &mut OperationContext<'_>,
    name: &ContainerRef,
    template: &str,
) -> Result<OperationEnd, OperationRefusal> {
    let helper = context.helper;
    require_root()?;
    let policy = helper.policy.now();
    let found = policy.templates.iter().find(|t| t.name() == template);
    let template = found.ok_or_else(|| no_template(template, &policy.templates))?;
    let _claim = helper.locks.take(name)?;
    check_new(helper, name)?;
    let stage = StagingDir::create_in(helper.containers.lxcpath(), name.as_str()).await?;
    let mut args = vec!["-n", name.as_str(), "-B", "dir", "-t", template.program()];
    if !template.options().is_empty() {
        args.push("--");
        args.extend(template.options().iter().map(String::as_str));
    }
    let ending = run(context, "lxc-create", stage.path(), &args).await;
    move_into_place(helper, stage, name, ending).await
}

/// Destroys a container and its contents.
pub async fn destroy(
    context: &mut OperationContext<'_>,
    container: &ContainerRef,
    force: bool,
    snapshots: bool,
) -> Result<OperationEnd, OperationRefusal> {
    let helper = context.helper;
    require_plain_lxc(helper, container)?;
    let _claim = helper.locks.take(container)?;
    if !force {
        require_stopped(helper, container).await?;
    }
    let mut args = vec!["-n", container.as_str()];
    args.extend(force.then_some("-f"));
    args.extend(snapshots.then_some("-s"));
    let lxcpath = helper.containers.lxcpath();
    run(context, "lxc-destroy", lxcpath, &args).await
}

/// Rejects a name of another runtime, and one that the owner's policy file does not allow or that is taken.
pub fn check_new(helper: &HelperContext, name: &ContainerRef) -> Result<(), OperationRefusal> {
    require_lxc(name)?;
    if !helper.policy.now().allows_container(name.as_str()) {
        let message = format!("the owner's policy does not allow a container named '{name}'");
        return Err(OperationRefusal::new(RefusalCode::Forbidden, message));
    }
    let definitions = helper.containers.definitions();
    let directory = definitions.directory(name);
    if definitions.file(name).exists() || fs::symlink_metadata(directory).is_ok() {
        let message = format!("container '{name}' already exists; choose another name");
        return Err(OperationRefusal::bad_command(message));
    }
    if definitions.file(name) != definitions.directory(name).join(CONFIG) {
        let message =
            "on Proxmox VE a number is reserved for its own containers; choose another name";
        return Err(OperationRefusal::bad_command(message));
    }
    Ok(())
}

/// Moves the container from its stage to its place, if it was created without errors.
pub async fn move_into_place(
    helper: &HelperContext,
    stage: StagingDir,
    name: &ContainerRef,
    ending: Result<OperationEnd, OperationRefusal>,
) -> Result<OperationEnd, OperationRefusal> {
    let ending = match ending {
        Ok(ending) if ending == OperationEnd::SUCCESS => {
            let from = stage.path().join(name.as_str());
            let to = helper.containers.definitions().directory(name);
            let moved = to_its_end(move || {
                let text = rewrite_paths(&from, &to)?;
                definition::write(&from.join(CONFIG), &text)?;
                fs::rename(&from, &to).map_err(|e| {
                    OperationRefusal::failed(format!(
                        "the container cannot be moved into place: {e}"
                    ))
                })
            });
            moved.await.map(|()| ending)
        }
        broken => broken,
    };
    stage.clear().await;
    ending
}

/// Returns the definition in `from` with its paths changed to `to`.
pub fn rewrite_paths(from: &Path, to: &Path) -> Result<String, OperationRefusal> {
    let text = definition::read(&from.join(CONFIG))?;
    let (from, to) = (from.to_string_lossy(), to.to_string_lossy());
    Ok(text.replace(&format!("{from}/"), &format!("{to}/")))
}

fn no_template(name: &str, known: &[ContainerTemplate]) -> OperationRefusal {
    let known: Vec<&str> = known.iter().map(ContainerTemplate::name).collect();
    let name = name.escape_debug();
    OperationRefusal::bad_command(if known.is_empty() {
        "the owner of this server allows no templates; templates in /etc/gatewren/helper.toml lists the allowed ones"
            .to_owned()
    } else {
        let known = known.join(", ");
        format!("there is no template '{name}' here; allowed templates: {known}")
    })
}
