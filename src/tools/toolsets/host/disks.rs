//! `disk_*`: the host's disks.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::toolsets::failure::failed;
use gatewren_host::backends::{Disk, FilesystemUsage, Host, MountedFilesystem};
use gatewren_wire::registry::{Cx, Result, Risk, Scope, Toolset};

/// The toolset.
pub fn tools(host: Arc<Host>) -> Toolset<Host> {
    Toolset::new(host)
        .with_name("storage")
        .tool("disk_list", Risk::Read, list)
        .about(Scope::Host)
        .titled("List disks and file systems")
        .startos("disk.list", &[])
}

/// List the host's disks with model, size and partitions, and the mounted file systems with their space.
/// `server_metrics` measures reads and writes.
///
/// File systems on other machines are listed without sizes; unknown values are left out.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {}

#[derive(Serialize, JsonSchema)]
struct Disks {
    /// The disks, sorted by name.
    disks: Vec<Disk>,
    /// The mounted file systems that hold data, sorted by path.
    filesystems: Vec<FileSystem>,
}

#[derive(Serialize, JsonSchema)]
struct FileSystem {
    /// Where it is mounted.
    path: String,
    /// The type of file system, such as `ext4`.
    filesystem: String,
    /// The mounted device or share, such as `/dev/sda1`.
    source: String,
    /// Whether it is read-only, by configuration or after an error.
    read_only: bool,
    /// Its size in bytes; absent when its data is on another machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    total_bytes: Option<u64>,
    /// How full it is; absent when its data is on another machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    space: Option<FilesystemUsage>,
}

async fn list(host: Arc<Host>, List {}: List, cx: Cx) -> Result<Disks> {
    let (disks, mut mounts) = host.disks().await.map_err(failed)?;
    mounts.retain(|(point, _)| cx.caller().reach.path(&point.path));
    Ok(Disks {
        disks,
        filesystems: mounts.into_iter().map(filesystem).collect(),
    })
}

fn filesystem((point, size): MountedFilesystem) -> FileSystem {
    FileSystem {
        path: point.path,
        filesystem: point.filesystem,
        source: point.source,
        read_only: point.read_only,
        total_bytes: size.as_ref().map(|size| size.total_bytes),
        space: size.map(|size| size.space()),
    }
}
