//! Disk information that only root can get: the usage of each directory, and the health of disks and pools.

use gatewren_wire::operations::{HostDiskUsage, Operation, OperationEnd, OperationRefusal};

use crate::context::operation_context::OperationContext;
use crate::context::tools;
use crate::processes::commands::require_root;

/// The most levels of directories that are listed separately.
const DEPTH: u8 = 8;

/// The longest path (`PATH_MAX` without its NUL).
const PATH_BYTES: usize = 4095;

/// Performs one of the operations on disks.
pub async fn perform(
    context: &mut OperationContext<'_>,
    operation: &Operation,
) -> Result<OperationEnd, OperationRefusal> {
    let tool = match operation {
        Operation::HostDiskUsage(args) => usage(args)?,
        Operation::HostSmart { disk } => {
            let device = format!("/dev/{}", disk.as_str());
            let args = ["--json=c", "--info", "--health", "--attributes"];
            let args = args.into_iter().chain(["--nocheck=standby", &device]);
            tools::HostTool::new("smartctl", args)
        }
        Operation::HostPools {} => {
            let columns = "name,health,size,allocated,fragmentation";
            tools::HostTool::new("zpool", ["list", "-H", "-p", "-o", columns])
        }
        Operation::HostBtrfs { path } => {
            let path = check_path(path)?;
            tools::HostTool::new("btrfs", ["--format", "json", "device", "stats", "--", path])
        }
        _ => return Err(OperationRefusal::failed("unsupported disk operation")),
    };
    require_root()?;
    context.run_tool(&tool).await
}

fn check_path(path: &str) -> Result<&str, OperationRefusal> {
    if !path.starts_with('/') || path.len() > PATH_BYTES || path.contains('\0') {
        return Err(OperationRefusal::bad_command(
            "the path must be absolute, such as /var",
        ));
    }
    Ok(path)
}

/// Sums up a directory on its file system, with subtotals for the directories below it.
fn usage(request: &HostDiskUsage) -> Result<tools::HostTool, OperationRefusal> {
    let path = check_path(&request.path)?;
    let depth = format!("--max-depth={}", request.depth.min(DEPTH));
    let fixed = [
        "--null",
        "--one-file-system",
        "--dereference-args",
        "--block-size=1",
    ];
    let rest = [depth.as_str(), "--", path];
    Ok(tools::HostTool::new("du", fixed.into_iter().chain(rest)))
}
