//! The operations of the helper, one row each: what is asked, and the facts that the helper decides by. It can do
//! nothing that is not in this list.

use serde::{Deserialize, Serialize};

use gatewren_base::config::HelperClass::{
    Cleanup, ContainerShell, HostFileReads, HostFileWrites, HostLogs, HostReads, HostSettings,
    HostShell, LxcManage, LxcReads, LxcWrites, MailTo, Network, Power, Storage, Units, Updates,
    UpdatesApply,
};

use super::arguments::{HostDiskUsage, PowerPlan};
use super::backup::BackupAction;
use super::cleanup::DiskCleanup;
use super::command::Command;
use super::container_action::ContainerAction;
use super::container_ref::ContainerRef;
use super::device::{DiskName, TunnelName};
use super::firmware::FirmwareAction;
use super::host_files::{HostFileList, HostFileRead, HostFileSearch, HostFileWrite};
use super::host_setting::HostSetting;
use super::job::JobId;
use super::log_query::LogQuery;
use super::name_servers::NameServers;
use super::operation_facts::{OperationFacts, TimeClass, changes, operations, reads};
use super::owner_message::MailMessage;
use super::probe::HostProbe;
use super::processes::ProcessOrder;
use super::repair::HostRepair;
use super::ssh_keys::SshKeyAction;
use super::system_record::SystemRecord;
use super::unit_change::UnitChange;
use super::unit_name::UnitName;
use super::update::{UpdateOrder, UpdateRunOrder};
use super::wifi::WifiAction;

operations! {
    /// An operation of the helper.
    ///
    /// Variants without fields have braces too: for unit variants, serde would accept unknown members.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
    pub enum Operation {
        /// Nothing; shows that the helper answers.
        Ping {} = reads("ping", None);
        /// Print which classes of operations `helper.toml` allows, as a JSON list of its keys: a line now, and one
        /// after each change, until the connection closes.
        Bounds {} = reads("bounds", None).takes(TimeClass::Unlimited);
        /// Print the host's mounts and the state of its clock, as JSON ([`HostView`](super::host_view::HostView)).
        HostView {} = reads("host_view", HostReads);
        /// Print the sizes of file systems of the host in bytes, as a JSON object with the mount points as keys.
        HostSpace {
            /// The mount points.
            places: Vec<String>,
        } = reads("host_space", HostReads);
        /// Print the programs that own sockets of the host, as a JSON object with the sockets' numbers as keys.
        HostPrograms {
            /// The sockets' numbers (inodes).
            sockets: Vec<u64>,
        } = reads("host_programs", HostReads);
        /// Print the end of a record of logins or packages of the host: a line of JSON
        /// ([`RecordHeader`](super::system_record::RecordHeader)), then the bytes.
        HostRecord {
            /// The record.
            record: SystemRecord,
        } = reads("host_record", HostLogs);
        /// Run a command on the host.
        HostCommand {
            /// The command.
            command: Command,
        } = changes("host_command", HostShell).takes(TimeClass::Command);
        /// Run a command inside a running container.
        ContainerCommand {
            /// The container.
            container: ContainerRef,
            /// The command.
            command: Command,
            /// Whether the front judged the call as one on the host. Otherwise it is rejected if the container has the
            /// rights of the host's root.
            #[serde(default)]
            on_host: bool,
        } with (container) = changes("container_command", ContainerShell).takes(TimeClass::Command).on(container);
        /// Print the containers, a name a line.
        ContainerList {} = reads("container_list", LxcReads);
        /// Print the containers, with the state and `os-release` of those of Docker and Podman on the host, a JSON object
        /// ([`OverviewEntry`](super::overview::OverviewEntry)) a line.
        ContainerOverview {} = reads("container_overview", LxcReads);
        /// Print which container runtimes are here, served and answer, a JSON object a line
        /// ([`RuntimeReport`](super::runtime_report::RuntimeReport)).
        RuntimeReport {} = reads("runtime_report", LxcReads);
        /// Print the state, first process and addresses of a container, as `lxc-info` does.
        ContainerInfo {
            /// The container.
            container: ContainerRef,
        } with (container) = reads("container_info", LxcReads).on(container);
        /// Print a container's configuration file.
        ContainerConfig {
            /// The container.
            container: ContainerRef,
        } with (container) = reads("container_config", LxcReads).on(container);
        /// Print a container's `os-release`, read from its root file system.
        ContainerOsRelease {
            /// The container.
            container: ContainerRef,
        } with (container) = reads("container_os_release", LxcReads).on(container);
        /// Print the kernel's data about running containers, a JSON object ([`Vitals`](super::vitals::Vitals)) a line.
        ContainerVitals {
            /// The container; when absent, all containers that an earlier query found running, without their usage.
            #[serde(default)]
            container: Option<ContainerRef>,
        } with (container) = reads("container_vitals", LxcReads).on(container);
        /// Print the counters of all containers that an earlier query found running, a JSON object
        /// ([`MeasuredContainer`](super::vitals::MeasuredContainer)) a line.
        ContainerCounters {} = reads("container_counters", LxcReads);
        /// Count the bytes on disk of a container's root file system, and print them (`du`).
        ContainerDisk {
            /// The container.
            container: ContainerRef,
        } with (container) = reads("container_disk", LxcReads).on(container);
        /// Start a container.
        ContainerStart {
            /// The container.
            container: ContainerRef,
        } with (container) = changes("container_start", LxcWrites).on(container);
        /// Stop a container: request a shutdown, then kill it after the grace period.
        ContainerStop {
            /// The container.
            container: ContainerRef,
            /// Seconds to wait for an orderly shutdown; 0 kills at once.
            grace_s: u32,
        } with (container) = changes("container_stop", LxcWrites).on(container);
        /// Another operation on a container.
        #[serde(rename = "container_deed")]
        ContainerAction {
            /// The container.
            container: ContainerRef,
            /// The operation.
            #[serde(rename = "deed")]
            action: ContainerAction,
        } with (container, action) = action.facts().on(container);
        /// Create a container from a template that `helper.toml` names.
        ContainerCreate {
            /// The new container's name.
            name: ContainerRef,
            /// The template's name in `helper.toml`.
            template: String,
        } = changes("container_create", LxcManage).takes(TimeClass::Copy);
        /// Report changes of containers until the connection closes, a line each: `'NAME' changed state to [STATE]`
        /// (`lxc-monitor`), `'NAME' changed definition` when it was created, deleted or configured, and `definitions
        /// changed` when any of them may have changed.
        ContainerEvents {} = reads("container_events", LxcReads).takes(TimeClass::Unlimited);
        /// Restart the host.
        Restart {
            /// The time, and the message to logged-in users.
            plan: PowerPlan,
        } = changes("restart", Power);
        /// Shut the host down.
        Shutdown {
            /// The time, and the message to logged-in users.
            plan: PowerPlan,
        } = changes("shutdown", Power);
        /// Cancel a scheduled restart or shutdown, and print whether there was one (`b true`).
        CancelShutdown {} = changes("cancel_shutdown", Power);
        /// Print what apt would do to upgrade the host's packages, as `apt-get --simulate dist-upgrade` does.
        UpdateCheck {
            /// The container; the host when absent.
            #[serde(default)]
            container: Option<ContainerRef>,
        } with (container) = reads("update_check", Updates).on(container);
        /// Have apt fetch its package lists. The helper rejects this for a container, because it would run the
        /// container's apt.
        UpdateRefresh {
            /// The container; the host when absent.
            #[serde(default)]
            container: Option<ContainerRef>,
        } with (container) = changes("update_refresh", UpdatesApply).takes(TimeClass::Refresh).on(container);
        /// Have apt upgrade packages, and print its output and then the differences, a line each after `gatewren: `.
        UpdateApply(UpdateOrder) with (0: order) = changes("update_apply", UpdatesApply).takes(TimeClass::Copy).on(&order.container);
        /// Upgrade several targets, each after a snapshot or a backup and with a check of its health, and print what
        /// came of each ([`UpdateTargetReport`](super::update::UpdateTargetReport)), a JSON object a line. apt's own
        /// output goes to stderr.
        UpdateRun(UpdateRunOrder) = changes("update_run", UpdatesApply).takes(TimeClass::Backup);
        /// Print one of apt's history files (`/var/log/apt/history.log`).
        UpdateHistory {
            /// The container; the host when absent.
            #[serde(default)]
            container: Option<ContainerRef>,
            /// The number of the rotated file; 0 for the current one.
            file: u8,
        } with (container) = reads("update_history", Updates).on(container);
        /// Print lines of the host's journal, a JSON object a line, as `journalctl -o json` does.
        HostLog {
            /// The query.
            query: LogQuery,
        } = reads("host_log", HostLogs);
        /// Print lines of a running container's own journal, read by the host's `journalctl`.
        ContainerLog {
            /// The container.
            container: ContainerRef,
            /// The query.
            query: LogQuery,
        } with (container) = reads("container_log", LxcReads).on(container);
        /// Print the boots in the host's journal, as `journalctl --list-boots --output=json` does.
        HostBoots {} = reads("host_boots", HostLogs);
        /// Print the lines of the host's journal about planned shutdowns and the end of the journal's daemon, a JSON
        /// object a line.
        HostUptimeHistory {} = reads("host_uptime_history", HostLogs);
        /// Print the boots in a running container's own journal, read by the host's `journalctl`.
        ContainerBoots {
            /// The container.
            container: ContainerRef,
        } with (container) = reads("container_boots", LxcReads).on(container);
        /// Print the host's processes with the highest usage, as JSON ([`Processes`](super::processes::ProcessUsageList)).
        HostProcesses {
            /// The resource to sort by.
            order: ProcessOrder,
            /// The maximum number of processes.
            most: u32,
        } = reads("host_processes", HostReads);
        /// Have the host's systemd change a unit, and print its answer, as `busctl --json=short` does; for a change
        /// that takes time, this is the job's object path.
        UnitChange {
            /// The unit.
            unit: UnitName,
            /// The change.
            change: UnitChange,
        } = changes("unit_change", Units);
        /// Print the units of a running container's own systemd, a unit a line, as `systemctl list-units` does.
        ContainerUnitList {
            /// The container.
            container: ContainerRef,
        } with (container) = reads("container_unit_list", LxcReads).on(container);
        /// Print the properties of a unit of a running container's own systemd, a property a line.
        ContainerUnit {
            /// The container.
            container: ContainerRef,
            /// The unit.
            unit: UnitName,
        } with (container) = reads("container_unit", LxcReads).on(container);
        /// Have a running container's own systemd change a unit, and wait for the end of the change.
        ContainerUnitChange {
            /// The container.
            container: ContainerRef,
            /// The unit.
            unit: UnitName,
            /// The change.
            change: UnitChange,
        } with (container) = changes("container_unit_change", LxcWrites).on(container);
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
        } with (operation) = operation.facts().in_a_job();
        /// Print the state of jobs ([`Job`](super::job::Job)), the newest first, a JSON object a line.
        JobList {
            /// The owner; all owners when absent.
            #[serde(default)]
            owner: Option<String>,
            /// The job; all jobs when absent.
            #[serde(default)]
            job: Option<JobId>,
        } = reads("job_list", None);
        /// Wait until a job has ended, and print it.
        JobWait {
            /// The job's owner.
            owner: Option<String>,
            /// The job.
            job: JobId,
        } = reads("job_wait", None).takes(TimeClass::Unlimited);
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
        } = reads("job_output", None);
        /// Kill a job with all its child processes, and print it.
        JobCancel {
            /// The job's owner.
            owner: Option<String>,
            /// The job.
            job: JobId,
        } = changes("job_cancel", None);
        /// Delete an ended job whose id no caller knows.
        JobForget {
            /// The job's owner.
            owner: Option<String>,
            /// The job.
            job: JobId,
        } = changes("job_forget", None);
        /// Print each job that has ended unobserved by its caller, and then each that ends so, a JSON object a line,
        /// until the connection closes.
        JobEnds {} = reads("job_ends", None).takes(TimeClass::Unlimited);
        /// Print the entries of a directory of the host, as JSON ([`FileList`](super::host_files::FileList)).
        HostFileList(HostFileList) = reads("host_file_list", HostFileReads);
        /// Search files below a directory of the host, and print the matches as JSON
        /// ([`FileMatches`](super::host_files::FileMatches)).
        HostFileSearch(HostFileSearch) = reads("host_file_search", HostFileReads);
        /// Print a line of JSON about a file of the host ([`FileFacts`](super::host_files::FileFacts)), and then a part
        /// of it.
        HostFileRead(HostFileRead) = reads("host_file_read", HostFileReads);
        /// Create or replace a file of the host, and print the result as JSON
        /// ([`FileWritten`](super::host_files::FileWritten)).
        HostFileWrite(HostFileWrite) = changes("host_file_write", HostFileWrites);
        /// Check whether another machine answers, and print the result as JSON ([`Probed`](super::probe::ProbeResult)).
        HostProbe(HostProbe) = reads("host_probe", HostReads);
        /// Print the firewall's rules, as `nft` prints them in JSON (libnftables-json(5)).
        HostFirewall {} = reads("host_firewall", HostReads);
        /// Sum up the contents of a directory of the host, and print the sums of the directories below it: for each one
        /// bytes, a tab, the path and a NUL (`du`).
        HostDiskUsage(HostDiskUsage) = reads("host_disk_usage", HostReads);
        /// Print what fills the host's disks as JSON ([`HostDiskReport`](super::cleanup::HostDiskReport)).
        HostDiskReport {} = reads("host_disk_report", HostReads);
        /// Print the sizes of containers as JSON ([`ContainerDiskReport`](super::cleanup::ContainerDiskReport)).
        ContainerDiskReport {} = reads("container_disk_report", LxcReads);
        /// Delete what a report found; print a JSON list of [`CleanupResult`](super::cleanup::CleanupResult) after a mark.
        DiskCleanup(DiskCleanup) = changes("disk_cleanup", Cleanup).takes(TimeClass::Copy);
        /// Print a disk's SMART data, as `smartctl` prints it in JSON; a sleeping disk is not woken.
        HostSmart {
            /// The disk.
            disk: DiskName,
        } = reads("host_smart", HostReads);
        /// Print the ZFS pools, a line each: name, health, size, bytes used and fragmentation, separated by tabs
        /// (`zpool`).
        HostPools {} = reads("host_pools", HostReads);
        /// Print the error counters of the devices of a btrfs file system, as `btrfs` prints them in JSON.
        HostBtrfs {
            /// The mount point.
            path: String,
        } = reads("host_btrfs", HostReads);
        /// Check a file system, an array or a pool for damage, repair it where possible, and print the result as JSON
        /// ([`Repaired`](super::repair::RepairResult)).
        HostRepair(HostRepair) = changes("host_repair", Storage).takes(TimeClass::Repair);
        /// Change a setting of the host.
        HostSetting {
            /// The setting and its new value.
            setting: HostSetting,
        } with (setting) = changes(setting.name(), HostSettings);
        /// Query or update the firmware of the host's devices.
        Firmware {
            /// The operation.
            #[serde(rename = "deed")]
            action: FirmwareAction,
        } with (action) = action.facts();
        /// Print `WireGuard`'s tunnels as a JSON list ([`Tunnel`](super::tunnels::Tunnel)).
        HostTunnels {} = reads("host_tunnels", HostReads);
        /// Change or query backups.
        Backup {
            /// The operation.
            #[serde(rename = "deed")]
            action: BackupAction,
        } with (action) = action.facts();
        /// Bring up a tunnel that has a profile.
        HostTunnelUp {
            /// The tunnel.
            tunnel: TunnelName,
        } = changes("host_tunnel_up", Network);
        /// Take a tunnel down.
        HostTunnelDown {
            /// The tunnel.
            tunnel: TunnelName,
        } = changes("host_tunnel_down", Network);
        /// Query wireless networks, or change which one is joined.
        Wifi {
            /// The operation.
            #[serde(rename = "deed")]
            action: WifiAction,
        } with (action) = action.facts();
        /// Set the host's name servers.
        SetNameServers {
            /// The servers; when empty, the network provides them.
            servers: NameServers,
        } = changes("set_name_servers", Network);
        /// Query or change the SSH keys of the accounts that `helper.toml` names.
        SshKeys {
            /// The operation.
            #[serde(rename = "deed")]
            action: SshKeyAction,
        } with (action) = action.facts();
        /// Send a message to the recipient that `helper.toml` names.
        Mail(MailMessage) = changes("mail", MailTo);
    }
}
