//! What only root sees of the host's disks: how much stands in each directory.

use std::sync::Arc;

use crate::exec::{Ending, HostDiskUsage};

use super::{house::House, pump::Pump, refusal::Refusal, tools};

/// The most levels of directories that are told apart.
const DEPTH: u8 = 8;

/// The longest path (`PATH_MAX` without its NUL).
const PATH_BYTES: usize = 4095;

/// Counts what a directory holds on its file system, and prints the sums of the directories below it (`du`).
pub async fn usage(
    house: &Arc<House>,
    pump: &mut Pump,
    asked: &HostDiskUsage,
) -> Result<Ending, Refusal> {
    let path = &asked.path;
    if !path.starts_with('/') || path.len() > PATH_BYTES || path.contains('\0') {
        return Err(Refusal::bad_command(
            "the path must be absolute, such as /var",
        ));
    }
    let depth = asked.depth.min(DEPTH);
    let tool = tools::Tool {
        name: "du",
        args: [
            "--null",
            "--one-file-system",
            "--dereference-args",
            "--block-size=1",
            &format!("--max-depth={depth}"),
            "--",
            path,
        ]
        .map(str::to_owned)
        .into(),
    };
    tools::carry(&tool, pump, &house.strays).await
}
