//! Runs an LXC tool that starts other programs. All of them end with the call.

use std::collections::BTreeMap;
use std::path::Path;

use gatewren_wire::operations::{Command, OperationEnd, OperationRefusal, Program};

use super::commands::run_on_host;
use crate::context::lxc_tools::with_path;
use crate::context::operation_context::OperationContext;
use crate::context::programs::find;

/// Runs an LXC tool on the containers in `lxcpath`, with these arguments.
pub async fn run(
    context: &mut OperationContext<'_>,
    name: &'static str,
    lxcpath: &Path,
    args: &[&str],
) -> Result<OperationEnd, OperationRefusal> {
    let program = find(name)?.to_string_lossy().into_owned();
    let tool = with_path(name, lxcpath, args);
    let command = Command {
        program: Program::Argv([program].into_iter().chain(tool.args).collect()),
        user: None,
        cwd: Some("/".to_owned()),
        env: BTreeMap::new(),
    };
    run_on_host(context, &command).await
}
