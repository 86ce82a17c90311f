//! The operations of the helper: it can do nothing that is not in this list.

use serde::{Deserialize, Serialize};

use super::audit_head::AuditHead;
use super::backup::BackupAction;
use super::command::Command;
use super::container_action::ContainerAction;
use super::device::{DiskName, TunnelName};
use super::firmware::FirmwareAction;
use super::host_files::{HostFileList, HostFileRead, HostFileSearch, HostFileWrite};
use super::host_setting::HostSetting;
use super::job::JobId;
use super::limits::OperationLimits;
use super::log_query::LogQuery;
use super::name::ContainerName;
use super::name_servers::NameServers;
use super::owner_message::MailMessage;
use super::probe::HostProbe;
use super::processes::ProcessOrder;
use super::repair::HostRepair;
use super::ssh_keys::SshKeyAction;
use super::unit_change::UnitChange;
use super::unit_name::UnitName;
use super::update::UpdateOrder;
use super::wifi::WifiAction;
use gatewren_base::sys::Requester;

/// The first frame of a connection: one operation and its limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HelperRequest {
    /// The operation to run.
    pub operation: Operation,
    /// The limits of the operation.
    pub limits: OperationLimits,
    /// The reference of the call, as in the journal and the audit.
    pub reference: String,
    /// On whose behalf the front asks. Requests without a requester share the slots of one agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requester: Option<Requester>,
    /// The last row of the front's audit; absent if the front keeps none or has written none yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditHead>,
}

/// An operation of the helper.
///
/// Variants without fields have braces too: for unit variants, serde would accept unknown members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Operation {
    /// Nothing; shows that the helper answers.
    Ping {},
    /// Print which classes of operations `helper.toml` allows, as a JSON list of its keys: a line now, and one
    /// after each change, until the connection closes.
    Bounds {},
    /// Print the host's mounts and the state of its clock, as JSON ([`HostView`](super::host_view::HostView)).
    HostView {},
    /// Print the sizes of file systems of the host in bytes, as a JSON object with the mount points as keys.
    HostSpace {
        /// The mount points.
        places: Vec<String>,
    },
    /// Print the programs that own sockets of the host, as a JSON object with the sockets' numbers as keys.
    HostPrograms {
        /// The sockets' numbers (inodes).
        sockets: Vec<u64>,
    },
    /// Run a command on the host.
    HostCommand {
        /// The command.
        command: Command,
    },
    /// Run a command inside a running container.
    ContainerCommand {
        /// The container.
        container: ContainerName,
        /// The command.
        command: Command,
    },
    /// Print the containers, a name a line.
    ContainerList {},
    /// Print the state, first process and addresses of a container, as `lxc-info` does.
    ContainerInfo {
        /// The container.
        container: ContainerName,
    },
    /// Print a container's configuration file.
    ContainerConfig {
        /// The container.
        container: ContainerName,
    },
    /// Print a container's `os-release`, read from its root file system.
    ContainerOsRelease {
        /// The container.
        container: ContainerName,
    },
    /// Print the kernel's data about running containers, a JSON object ([`Vitals`](super::vitals::Vitals)) a line.
    ContainerVitals {
        /// The container; when absent, all containers that an earlier query found running, without their usage.
        #[serde(default)]
        container: Option<ContainerName>,
    },
    /// Count the bytes on disk of a container's root file system, and print them (`du`).
    ContainerDisk {
        /// The container.
        container: ContainerName,
    },
    /// Start a container.
    ContainerStart {
        /// The container.
        container: ContainerName,
    },
    /// Stop a container: request a shutdown, then kill it after the grace period.
    ContainerStop {
        /// The container.
        container: ContainerName,
        /// Seconds to wait for an orderly shutdown; 0 kills at once.
        grace_s: u32,
    },
    /// Another operation on a container.
    ContainerDeed {
        /// The container.
        container: ContainerName,
        /// The operation.
        deed: ContainerAction,
    },
    /// Create a container from a template that `helper.toml` names.
    ContainerCreate {
        /// The new container's name.
        name: ContainerName,
        /// The template's name in `helper.toml`.
        template: String,
    },
    /// Report changes of containers until the connection closes, a line each: `'NAME' changed state to [STATE]`
    /// (`lxc-monitor`), `'NAME' changed definition` when it was created, deleted or configured, and `definitions
    /// changed` when any of them may have changed.
    ContainerEvents {},
    /// Restart the host.
    Restart {
        /// The time, and the message to logged-in users.
        plan: PowerPlan,
    },
    /// Shut the host down.
    Shutdown {
        /// The time, and the message to logged-in users.
        plan: PowerPlan,
    },
    /// Cancel a scheduled restart or shutdown, and print whether there was one (`b true`).
    CancelShutdown {},
    /// Print what apt would do to upgrade the host's packages, as `apt-get --simulate dist-upgrade` does.
    UpdateCheck {
        /// The container; the host when absent.
        #[serde(default)]
        container: Option<ContainerName>,
    },
    /// Have apt fetch its package lists. The helper rejects this for a container, because it would run the
    /// container's apt.
    UpdateRefresh {
        /// The container; the host when absent.
        #[serde(default)]
        container: Option<ContainerName>,
    },
    /// Have apt upgrade packages, and print its output and then the differences, a line each after `gatewren: `.
    UpdateApply(UpdateOrder),
    /// Print one of apt's history files (`/var/log/apt/history.log`).
    UpdateHistory {
        /// The container; the host when absent.
        #[serde(default)]
        container: Option<ContainerName>,
        /// The number of the rotated file; 0 for the current one.
        file: u8,
    },
    /// Print lines of the host's journal, a JSON object a line, as `journalctl -o json` does.
    HostLog {
        /// The query.
        query: LogQuery,
    },
    /// Print lines of a running container's own journal, read by the host's `journalctl`.
    ContainerLog {
        /// The container.
        container: ContainerName,
        /// The query.
        query: LogQuery,
    },
    /// Print the boots in the host's journal, as `journalctl --list-boots` does.
    HostBoots {},
    /// Print the boots in a running container's own journal, read by the host's `journalctl`.
    ContainerBoots {
        /// The container.
        container: ContainerName,
    },
    /// Print the host's processes with the highest usage, as JSON ([`Processes`](super::processes::ProcessUsageList)).
    HostProcesses {
        /// The resource to sort by.
        order: ProcessOrder,
        /// The maximum number of processes.
        most: u32,
    },
    /// Have the host's systemd change a unit, and print its answer, as `busctl --json=short` does; for a change
    /// that takes time, this is the job's object path.
    UnitChange {
        /// The unit.
        unit: UnitName,
        /// The change.
        change: UnitChange,
    },
    /// Print the units of a running container's own systemd, a unit a line, as `systemctl list-units` does.
    ContainerUnitList {
        /// The container.
        container: ContainerName,
    },
    /// Print the properties of a unit of a running container's own systemd, a property a line.
    ContainerUnit {
        /// The container.
        container: ContainerName,
        /// The unit.
        unit: UnitName,
    },
    /// Have a running container's own systemd change a unit, and wait for the end of the change.
    ContainerUnitChange {
        /// The container.
        container: ContainerName,
        /// The unit.
        unit: UnitName,
        /// The change.
        change: UnitChange,
    },
    /// Run another operation as a job. It prints the same output, but it continues when the connection closes, and
    /// its state can be queried later. The frame `Started` shows the caller that it is a job.
    JobStart {
        /// The new job's id.
        job: JobId,
        /// The agent that owns the job.
        owner: String,
        /// The tool that starts it.
        tool: String,
        /// Whether the operation ends for its caller as soon as the job exists, without its output.
        #[serde(default)]
        detached: bool,
        /// The operation to run.
        operation: Box<Self>,
    },
    /// Print the state of jobs ([`Job`](super::job::Job)), the newest first, a JSON object a line.
    JobList {
        /// The owner; all owners when absent.
        #[serde(default)]
        owner: Option<String>,
        /// The job; all jobs when absent.
        #[serde(default)]
        job: Option<JobId>,
    },
    /// Wait until a job has ended, and print it.
    JobWait {
        /// The job's owner.
        owner: Option<String>,
        /// The job.
        job: JobId,
    },
    /// Print a part of a job's output: a line of JSON ([`JobPiece`](super::job::JobOutputHeader)), then the bytes.
    JobOutput {
        /// The job's owner.
        owner: Option<String>,
        /// The job.
        job: JobId,
        /// Where the part begins, in bytes of the whole output.
        offset: u64,
        /// The maximum size of the part in bytes.
        bytes: u32,
    },
    /// Kill a job with all its child processes, and print it.
    JobCancel {
        /// The job's owner.
        owner: Option<String>,
        /// The job.
        job: JobId,
    },
    /// Delete an ended job whose id no caller knows.
    JobForget {
        /// The job's owner.
        owner: Option<String>,
        /// The job.
        job: JobId,
    },
    /// Print each job that has ended unobserved by its caller, and then each that ends so, a JSON object a line,
    /// until the connection closes.
    JobEnds {},
    /// Print the entries of a directory of the host, as JSON ([`FileList`](super::host_files::FileList)).
    HostFileList(HostFileList),
    /// Search files below a directory of the host, and print the matches as JSON
    /// ([`FileMatches`](super::host_files::FileMatches)).
    HostFileSearch(HostFileSearch),
    /// Print a line of JSON about a file of the host ([`FileFacts`](super::host_files::FileFacts)), and then a part
    /// of it.
    HostFileRead(HostFileRead),
    /// Create or replace a file of the host, and print the result as JSON
    /// ([`FileWritten`](super::host_files::FileWritten)).
    HostFileWrite(HostFileWrite),
    /// Check whether another machine answers, and print the result as JSON ([`Probed`](super::probe::ProbeResult)).
    HostProbe(HostProbe),
    /// Print the firewall's rules, as `nft` prints them in JSON (libnftables-json(5)).
    HostFirewall {},
    /// Sum up the contents of a directory of the host, and print the sums of the directories below it: for each one
    /// bytes, a tab, the path and a NUL (`du`).
    HostDiskUsage(HostDiskUsage),
    /// Print a disk's SMART data, as `smartctl` prints it in JSON; a sleeping disk is not woken.
    HostSmart {
        /// The disk.
        disk: DiskName,
    },
    /// Print the ZFS pools, a line each: name, health, size, bytes used and fragmentation, separated by tabs
    /// (`zpool`).
    HostPools {},
    /// Print the error counters of the devices of a btrfs file system, as `btrfs` prints them in JSON.
    HostBtrfs {
        /// The mount point.
        path: String,
    },
    /// Check a file system, an array or a pool for damage, repair it where possible, and print the result as JSON
    /// ([`Repaired`](super::repair::RepairResult)).
    HostRepair(HostRepair),
    /// Change a setting of the host.
    HostSetting {
        /// The setting and its new value.
        setting: HostSetting,
    },
    /// Query or update the firmware of the host's devices.
    Firmware {
        /// The operation.
        deed: FirmwareAction,
    },
    /// Print `WireGuard`'s tunnels as a JSON list ([`Tunnel`](super::tunnels::Tunnel)).
    HostTunnels {},
    /// Change or query backups.
    Backup {
        /// The operation.
        deed: BackupAction,
    },
    /// Bring up a tunnel that has a profile.
    HostTunnelUp {
        /// The tunnel.
        tunnel: TunnelName,
    },
    /// Take a tunnel down.
    HostTunnelDown {
        /// The tunnel.
        tunnel: TunnelName,
    },
    /// Query wireless networks, or change which one is joined.
    Wifi {
        /// The operation.
        deed: WifiAction,
    },
    /// Set the host's name servers.
    SetNameServers {
        /// The servers; when empty, the network provides them.
        servers: NameServers,
    },
    /// Query or change the SSH keys of the accounts that `helper.toml` names.
    SshKeys {
        /// The operation.
        deed: SshKeyAction,
    },
    /// Send a message to the recipient that `helper.toml` names.
    Mail(MailMessage),
}

/// A request for the disk usage of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostDiskUsage {
    /// Its absolute path.
    pub path: String,
    /// How many levels below it are listed separately.
    pub depth: u8,
}

/// When the host goes down, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PowerPlan {
    /// Seconds from now; raised to a minimum that lets the answer reach the caller.
    pub delay_s: u32,
    /// The message to logged-in users.
    #[serde(default)]
    pub reason: Option<String>,
}
