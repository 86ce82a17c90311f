//! `disk_repair`: checks the host's storage for damage.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::toolsets::failure::failed;
use crate::toolsets::long_call::call_job;
use gatewren_host::backends::{HostRepair, RepairResult, Storage};
use gatewren_wire::registry::{Cx, HelperClass, Result, Risk, Scope, ToolError, Toolset};

/// The toolset.
pub fn tools(storage: Arc<Storage>) -> Toolset<Storage> {
    Toolset::new(storage)
        .with_name("storage")
        .tool("disk_repair", Risk::Disrupt, repair)
        .also_named("storage_repair")
        .about(Scope::Host)
        .through(HelperClass::Storage)
        .titled("Check and repair storage")
        .startos("disk.repair", &[])
        .without_arguments("path", "/")
        .long()
}

/// Check and repair one file system, md array or ZFS pool (give exactly one of the arguments), and return its state.
/// Damaged files of an unmounted disk may be lost.
///
/// A large btrfs takes hours. Fails if it is in use or has no such check. Arrays and pools continue after the answer:
/// see `disk_health`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Repair {
    /// A mount point, such as `/` or `/srv`.
    ///
    /// btrfs is read completely now; ext4 is checked at the next boot.
    path: Option<String>,
    /// An unmounted disk or partition, such as `sdb1`; it is checked at once.
    disk: Option<String>,
    /// An md array, such as `md0`.
    array: Option<String>,
    /// A ZFS pool, such as `tank`.
    pool: Option<String>,
}

async fn repair(storage: Arc<Storage>, asked: Repair, cx: Cx) -> Result<RepairResult> {
    let what = parse_repair(asked)?;
    if let HostRepair::Mounted(path) = &what
        && !cx.caller().reach.path(path)
    {
        return Err(
            ToolError::new("nothing is mounted there; disk_list shows the mount points").into(),
        );
    }
    let result = storage.repair(what, call_job(&cx), cx.reference()).await;
    result.map_err(failed)
}

/// Returns the single target that was named.
fn parse_repair(asked: Repair) -> Result<HostRepair> {
    let Repair {
        path,
        disk,
        array,
        pool,
    } = asked;
    let odd = |name: &str| ToolError::new(format!("`{name}` is not a valid name"));
    match (path, disk, array, pool) {
        (Some(path), None, None, None) => Ok(HostRepair::Mounted(path)),
        (None, Some(disk), None, None) => {
            let name = disk.strip_prefix("/dev/").unwrap_or(&disk).to_owned();
            Ok(HostRepair::Disk(name.try_into().map_err(|_| odd("disk"))?))
        }
        (None, None, Some(array), None) => Ok(HostRepair::Array(
            array.try_into().map_err(|_| odd("array"))?,
        )),
        (None, None, None, Some(pool)) => {
            Ok(HostRepair::Pool(pool.try_into().map_err(|_| odd("pool"))?))
        }
        _ => Err(
            ToolError::new("exactly one of `path`, `disk`, `array` and `pool` is required").into(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::repairs::*;

    #[test]
    fn one_thing_is_named() {
        let read = |text: &str| parse_repair(serde_json::from_str(text).unwrap());
        let root = read(r#"{"path":"/"}"#).unwrap();
        assert_eq!(root, HostRepair::Mounted("/".to_owned()));
        let disk = read(r#"{"disk":"/dev/sdb1"}"#).unwrap();
        assert_eq!(disk, read(r#"{"disk":"sdb1"}"#).unwrap());
        for bad in [
            "{}",
            r#"{"path":"/","disk":"sda"}"#,
            r#"{"disk":"../sda"}"#,
            r#"{"disk":"-y"}"#,
            r#"{"array":"/dev/md0"}"#,
            r#"{"pool":"-a"}"#,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
