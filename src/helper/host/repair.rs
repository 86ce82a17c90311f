//! Checks file systems, arrays and pools for damage, and repairs what can be repaired.

use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gatewren_base::sys::source::{field, text, word};
use gatewren_base::sys::{Exit, is_free, unescape_mount};
use gatewren_wire::operations::{
    DiskName, HostRepair, OperationEnd, OperationRefusal, RepairOutcome, RepairResult,
};

use crate::context::operation_context::OperationContext;
use crate::context::tools::{HostTool, output, run_to_end};
use crate::processes::answers::line;
use crate::processes::commands::require_root;
use crate::processes::printing::print;
use crate::processes::step_error::{StepError, operation_end};

/// The most bytes of a program's output in the report.
const REPORT_BYTES: usize = 4096;

/// The mount count to set if no maximum is configured: the highest that tune2fs accepts.
const MOST_MOUNTS: u32 = 16_000;

/// Performs a check or repair and prints the result. A program that changes a file system is never killed: if the
/// caller disconnects, it still runs to its end.
pub async fn perform(
    context: &mut OperationContext<'_>,
    what: &HostRepair,
) -> Result<OperationEnd, OperationRefusal> {
    require_root()?;
    let done = match what {
        HostRepair::Mounted(place) => check_mounted(context, place).await,
        HostRepair::Disk(disk) => check_unmounted(context, disk).await,
        HostRepair::Array(array) => check_array(array).map_err(StepError::from),
        HostRepair::Pool(pool) => {
            let scrub = HostTool::new("zpool", ["scrub", "--", pool.as_str()]);
            let ended = run(context, scrub).await;
            ended.and_then(|(code, report)| Ok(start_result(code, &report)?))
        }
    };
    match done {
        Ok(repaired) => print(context.relay, move || Ok(line(&repaired))).await,
        Err(error) => operation_end(Err(error)),
    }
}

/// Checks a mounted file system.
async fn check_mounted(
    context: &mut OperationContext<'_>,
    place: &str,
) -> Result<RepairResult, StepError> {
    let table = text("/proc/self/mountinfo").unwrap_or_default();
    let Some(mount) = mount_at(&table, place) else {
        return Err(refuse_step(
            "nothing is mounted there; disk_list shows the mount points",
        ));
    };
    match mount.kind.as_str() {
        "btrfs" => scrub(context, place).await,
        "ext2" | "ext3" | "ext4" => {
            let device = device_of(&mount).ok_or_else(|| refuse_step("its device is unknown"))?;
            plan_check(context, place, &device).await
        }
        "xfs" => Err(refuse_step(
            "an xfs file system cannot be checked while it is mounted, nor at boot: unmount it and name its disk",
        )),
        "zfs" => Err(refuse_step("ZFS is checked pool by pool: name its pool")),
        kind => Err(refuse_step(format!("{kind} cannot be checked here"))),
    }
}

/// btrfs reads all its data and repairs what it has a good copy of. The call lasts as long.
async fn scrub(context: &mut OperationContext<'_>, place: &str) -> Result<RepairResult, StepError> {
    let start = HostTool::new("btrfs", ["scrub", "start", "-B", "-R", "--", place]);
    let ended = run(context, start).await;
    if matches!(ended, Err(StepError::Killed(_))) {
        // The kernel does the work, not the program.
        let cancel = HostTool::new("btrfs", ["scrub", "cancel", "--", place]);
        output(&cancel, &context.helper.orphans).await?;
    }
    let (code, report) = ended?;
    Ok(scrub_result(code, &report)?)
}

fn scrub_result(code: i32, report: &str) -> Result<RepairResult, OperationRefusal> {
    let count = |name| field(report, name, ':').and_then(|n| n.trim().parse::<u64>().ok());
    let outcome = match (
        code,
        count("uncorrectable_errors"),
        count("corrected_errors"),
    ) {
        (0, Some(0), Some(0)) => RepairOutcome::Sound,
        (0, Some(0), Some(_)) => RepairOutcome::Repaired,
        // btrfs exits with 3 if uncorrectable errors remain.
        (3, ..) | (0, Some(_), _) => RepairOutcome::Damaged,
        _ => return Err(OperationRefusal::failed(end_of(report))),
    };
    Ok(repair_result(outcome, report))
}

/// Plans a check at boot: raises the mount count of a mounted ext file system to its maximum. Setting the error flag
/// instead would be lost when it is unmounted.
async fn plan_check(
    context: &mut OperationContext<'_>,
    place: &str,
    device: &Path,
) -> Result<RepairResult, StepError> {
    let device = device.to_string_lossy();
    let facts = HostTool::new("dumpe2fs", ["-h", "--", &device]);
    let (_, facts) = run(context, facts).await?;
    let most = field(&facts, "Maximum mount count", ':');
    let most = most.and_then(|most| most.trim().parse().ok());
    let most = most.filter(|most| *most > 0).unwrap_or(MOST_MOUNTS);
    let most = most.to_string();
    let set = HostTool::new("tune2fs", ["-c", most.as_str(), "-C", &most, "--", &device]);
    let (code, report) = run(context, set).await?;
    if code != 0 {
        return Err(refuse_step(end_of(&report)));
    }
    let table = text("/etc/fstab").unwrap_or_default();
    let report = if is_checked_at_boot(&table, place) {
        ""
    } else {
        "But /etc/fstab disables the check: the sixth field of its line must be 1 for the root directory and 2 for \
         others."
    };
    Ok(repair_result(RepairOutcome::Planned, report))
}

/// Checks a file system that is not in use, and repairs what can be repaired without questions.
async fn check_unmounted(
    context: &mut OperationContext<'_>,
    disk: &DiskName,
) -> Result<RepairResult, StepError> {
    let device = format!("/dev/{}", disk.as_str());
    is_free(Path::new(&device)).map_err(|e| {
        refuse_step(format!(
            "{device} must exist and must not be mounted or in use: {e}"
        ))
    })?;
    let probe = HostTool::new("blkid", ["-p", "-o", "value", "-s", "TYPE", "--", &device]);
    let (_, kind) = run(context, probe).await?;
    match kind.trim() {
        "ext2" | "ext3" | "ext4" => {
            let check = HostTool::new("e2fsck", ["-f", "-p", "--", &device]);
            let (code, report) = run(context, check).await?;
            Ok(fsck_result(code, &report)?)
        }
        "xfs" => check_xfs(context, &device).await,
        "btrfs" => {
            // Only experts should use btrfs's own repair. A scrub of the mounted file system repairs what can be
            // repaired.
            let check = HostTool::new("btrfs", ["check", "--readonly", "--", &device]);
            let (code, report) = run(context, check).await?;
            let outcome = match code {
                0 => RepairOutcome::Sound,
                _ => RepairOutcome::Damaged,
            };
            Ok(repair_result(outcome, &report))
        }
        "" => Err(refuse_step(format!("{device} has no known file system"))),
        kind => Err(refuse_step(format!("{kind} cannot be checked here"))),
    }
}

/// Decodes the exit status of a check, a bit for each condition (fsck(8)).
fn fsck_result(code: i32, report: &str) -> Result<RepairResult, OperationRefusal> {
    let outcome = match code {
        0 => RepairOutcome::Sound,
        1..=3 => RepairOutcome::Repaired,
        4..=7 => RepairOutcome::Damaged,
        _ => return Err(OperationRefusal::failed(end_of(report))),
    };
    Ok(repair_result(outcome, report))
}

/// A first read-only run: only it tells whether there is something to repair (`xfs_repair(8)`).
async fn check_xfs(
    context: &mut OperationContext<'_>,
    device: &str,
) -> Result<RepairResult, StepError> {
    let look = HostTool::new("xfs_repair", ["-n", "--", device]);
    let (code, report) = run(context, look).await?;
    if code == 0 {
        return Ok(repair_result(RepairOutcome::Sound, &report));
    }
    let repair = HostTool::new("xfs_repair", ["--", device]);
    match run(context, repair).await? {
        (0, report) => Ok(repair_result(RepairOutcome::Repaired, &report)),
        (2, report) => Err(refuse_step(format!(
            "mount and unmount it first: {}",
            end_of(&report)
        ))),
        (_, report) => Ok(repair_result(RepairOutcome::Damaged, &report)),
    }
}

/// Makes md compare the data of its disks (md(4)). The kernel does the work.
fn check_array(array: &DiskName) -> Result<RepairResult, OperationRefusal> {
    let action = format!("/sys/block/{}/md/sync_action", array.as_str());
    match word(&action).as_deref() {
        Some("idle") => {}
        Some(other) => {
            let words = format!("the array is busy: {other}; disk_health shows the progress");
            return Err(OperationRefusal::failed(words));
        }
        None => {
            let words = "there is no such array to check; disk_health lists the arrays";
            return Err(OperationRefusal::failed(words));
        }
    }
    fs::write(&action, "check")
        .map_err(|e| OperationRefusal::failed(format!("md did not start the check: {e}")))?;
    Ok(repair_result(RepairOutcome::Begun, ""))
}

fn start_result(code: i32, report: &str) -> Result<RepairResult, OperationRefusal> {
    match code {
        0 => Ok(repair_result(RepairOutcome::Begun, report)),
        _ => Err(OperationRefusal::failed(end_of(report))),
    }
}

/// Runs a program and waits for it as long as the call lasts. The program is never killed.
async fn run(
    context: &mut OperationContext<'_>,
    tool: HostTool,
) -> Result<(i32, String), StepError> {
    let work = tokio::spawn(run_to_end(tool, Arc::clone(&context.helper.orphans)));
    let ended = context.relay.wait(work).await?;
    let (exit, report) =
        ended.map_err(|e| refuse_step(format!("the operation was aborted: {e}")))??;
    match exit {
        Exit::Code(code) => Ok((code, report)),
        Exit::Signal(signal) => Err(refuse_step(format!("it was killed by signal {signal}"))),
    }
}

fn refuse_step(words: impl Into<String>) -> StepError {
    StepError::Refused(OperationRefusal::failed(words))
}

fn repair_result(outcome: RepairOutcome, report: &str) -> RepairResult {
    RepairResult {
        outcome,
        report: end_of(report),
    }
}

fn end_of(report: &str) -> String {
    let report = report.trim();
    let start = report.ceil_char_boundary(report.len().saturating_sub(REPORT_BYTES));
    report.split_at(start).1.to_owned()
}

/// A mounted file system.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    /// Major and minor number.
    numbers: String,
    kind: String,
    source: String,
}

/// Returns the topmost mount of a place (proc(5)).
fn mount_at(table: &str, place: &str) -> Option<Mount> {
    let mut mounts = table.lines().rev().filter_map(|line| {
        let (before, behind) = line.split_once(" - ")?;
        let (mut before, mut behind) = (before.split(' ').skip(2), behind.split(' '));
        let numbers = before.next()?.to_owned();
        let at = unescape_mount(before.nth(1)?);
        (at == place).then_some(())?;
        Some(Mount {
            numbers,
            kind: behind.next()?.to_owned(),
            source: unescape_mount(behind.next()?),
        })
    });
    mounts.next()
}

/// Returns the device by its name, or by its number if the table names something else.
fn device_of(mount: &Mount) -> Option<PathBuf> {
    let by_number = format!("/dev/block/{}", mount.numbers);
    let is_device = |path: &PathBuf| {
        let facts = fs::metadata(path);
        path.starts_with("/dev") && facts.is_ok_and(|facts| facts.file_type().is_block_device())
    };
    [mount.source.as_str(), &by_number]
        .map(PathBuf::from)
        .into_iter()
        .find(is_device)
}

/// Returns whether a line of fstab(5) has a file system checked at boot.
fn is_checked_at_boot(table: &str, place: &str) -> bool {
    let lines = table.lines().map(str::trim);
    let mut lines = lines.filter(|line| !line.starts_with('#'));
    lines.any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let at = words.get(1).is_some_and(|at| unescape_mount(at) == place);
        at && words.get(5).is_some_and(|pass| *pass != "0")
    })
}

#[cfg(test)]
mod tests {
    use super::super::repair::*;

    #[test]
    fn the_last_mount_of_a_place_counts() {
        let table = "22 1 8:1 / / rw,relatime - ext4 /dev/root rw\n\
                     40 22 0:40 /@data /srv rw shared:1 - btrfs /dev/sdb rw,space_cache\n\
                     41 22 0:41 / /a\\040b rw master:2 shared:1 - tmpfs none rw\n\
                     42 22 8:17 / /srv rw - ext4 /dev/sdb1 rw\n";
        assert_eq!(mount_at(table, "/").unwrap().numbers, "8:1");
        assert_eq!(mount_at(table, "/a b").unwrap().kind, "tmpfs");
        let srv = mount_at(table, "/srv").unwrap();
        assert_eq!(
            (srv.kind.as_str(), srv.source.as_str()),
            ("ext4", "/dev/sdb1")
        );
        assert_eq!(mount_at(table, "/sr"), None);
        assert_eq!(mount_at("x y - z\n", "/"), None);
    }

    #[test]
    fn fstab_says_what_is_checked() {
        let table = "# /dev/sda1 /old ext4 defaults 0 1\n/dev/sda1 / ext4 defaults 0 1\n\
                     /dev/sdb1 /srv ext4 defaults 0 0\nUUID=1 /home ext4 defaults\n/dev/c /a\\040b ext4 x 0 2\n";
        for (place, is_checked) in [
            ("/", true),
            ("/a b", true),
            ("/srv", false),
            ("/home", false),
            ("/old", false),
        ] {
            assert_eq!(is_checked_at_boot(table, place), is_checked, "{place}");
        }
    }

    #[test]
    fn how_a_program_ends_says_what_came_of_it() {
        let fsck = |code| fsck_result(code, "said").map(|done| done.outcome).ok();
        assert_eq!(fsck(0), Some(RepairOutcome::Sound));
        assert_eq!(fsck(1), Some(RepairOutcome::Repaired));
        assert_eq!((fsck(4), fsck(5)), (Some(RepairOutcome::Damaged), fsck(4)));
        assert_eq!((fsck(8), fsck(12), fsck(32)), (None, None, None));
        let scrub = |code, uncorrectable, corrected| {
            let report = format!(
                "Status: finished\n\tuncorrectable_errors: {uncorrectable}\n\tcorrected_errors: {corrected}\n"
            );
            scrub_result(code, &report).map(|done| done.outcome).ok()
        };
        assert_eq!(scrub(0, 0, 0), Some(RepairOutcome::Sound));
        assert_eq!(scrub(0, 0, 7), Some(RepairOutcome::Repaired));
        assert_eq!(scrub(3, 2, 7), Some(RepairOutcome::Damaged));
        assert_eq!(scrub(1, 0, 0), None);
        assert!(scrub_result(0, "").is_err());
    }

    #[test]
    fn of_a_long_report_the_end_is_told() {
        let long = format!("{}ä the end\n", "ä".repeat(REPORT_BYTES));
        let end = end_of(&long);
        assert!(end.len() <= REPORT_BYTES && end.ends_with("ä the end"));
        assert_eq!(end_of(" \n"), "");
    }
}
