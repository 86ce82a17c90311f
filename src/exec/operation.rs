//! The operations that exist: whatever is not in this list, the helper cannot be made to do.

use serde::{Deserialize, Serialize};

use super::{
    audit_head::AuditHead,
    backup::BackupDeed,
    command::Command,
    deed::Deed,
    device::{DiskName, TunnelName},
    firmware::FirmwareDeed,
    host_files::{HostFileList, HostFileRead, HostFileSearch, HostFileWrite},
    host_setting::HostSetting,
    job::JobId,
    letter::Letter,
    limits::Limits,
    log_query::LogQuery,
    name::ContainerName,
    name_servers::NameServers,
    probe::HostProbe,
    processes::ProcessOrder,
    repair::HostRepair,
    ssh_keys::SshKeyDeed,
    unit_change::UnitChange,
    unit_name::UnitName,
    update::UpdateOrder,
    wifi::WifiDeed,
};
use crate::sys::Requester;

/// The first frame of a connection: one operation and its bounds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// What to do.
    pub operation: Operation,
    /// How far it may go.
    pub limits: Limits,
    /// The call that this is for, as it stands in the journal and the audit.
    pub reference: String,
    /// On whose behalf the front asks. Requests without a requester share the places of one agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requester: Option<Requester>,
    /// Where the front's audit ends; absent from a front that keeps none, or has written nothing yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditHead>,
}

/// One thing that the helper does.
///
/// Those that need nothing have braces all the same: of others serde would take members that mean nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Operation {
    /// Nothing; shows that the helper answers.
    Ping {},
    /// Print which classes of operations the owner's file allows, as a JSON list of its keys: a line now, and one
    /// whenever that changes, until the connection closes.
    Bounds {},
    /// Print the host's mounts and what its clock says of itself, as JSON ([`HostView`](super::host_view::HostView)).
    HostView {},
    /// Print the sizes of file systems of the host in bytes, a JSON object by place.
    HostSpace {
        /// Where they are mounted.
        places: Vec<String>,
    },
    /// Print the programs that have sockets of the host, a JSON object by the sockets' numbers.
    HostPrograms {
        /// The sockets' numbers (inodes).
        sockets: Vec<u64>,
    },
    /// Run a command on the host.
    HostCommand {
        /// What to run.
        command: Command,
    },
    /// Run a command inside a running container.
    ContainerCommand {
        /// Where.
        container: ContainerName,
        /// What to run.
        command: Command,
    },
    /// Print the containers, a name a line.
    ContainerList {},
    /// Print the state, first process and addresses of one, as `lxc-info` does.
    ContainerInfo {
        /// Which.
        container: ContainerName,
    },
    /// Print one container's configuration file.
    ContainerConfig {
        /// Which.
        container: ContainerName,
    },
    /// Print one container's `os-release`, read from its root file system.
    ContainerOsRelease {
        /// Which.
        container: ContainerName,
    },
    /// Print what the kernel shows of running containers, a JSON object ([`Vitals`](super::vitals::Vitals)) a
    /// line.
    ContainerVitals {
        /// Which; when absent, all that an earlier question has found running, without what they use.
        #[serde(default)]
        container: Option<ContainerName>,
    },
    /// Count the bytes on disk of one container's root file system, and print them (`du`).
    ContainerDisk {
        /// Which.
        container: ContainerName,
    },
    /// Start one.
    ContainerStart {
        /// Which.
        container: ContainerName,
    },
    /// Stop one: ask it, then force it after the grace.
    ContainerStop {
        /// Which.
        container: ContainerName,
        /// Seconds to wait for an orderly end; 0 forces at once.
        grace_s: u32,
    },
    /// Do something else to one, or look at something else of it.
    ContainerDeed {
        /// Which.
        container: ContainerName,
        /// What.
        deed: Deed,
    },
    /// Make one from a template that the owner's file names.
    ContainerCreate {
        /// The new one's name.
        name: ContainerName,
        /// The template's name in the file.
        template: String,
    },
    /// Report changes of containers until the connection closes, a line each: `'NAME' changed state to [STATE]`
    /// (`lxc-monitor`), `'NAME' changed definition` when it appeared, went or was configured, and
    /// `definitions changed` when any may have.
    ContainerEvents {},
    /// Restart the box.
    Restart {
        /// When, and what is said to those who are logged in.
        plan: PowerPlan,
    },
    /// Switch the box off.
    Shutdown {
        /// When, and what is said to those who are logged in.
        plan: PowerPlan,
    },
    /// Call off a restart or shutdown that is planned, and print whether there was one (`b true`).
    CancelShutdown {},
    /// Print what apt would do to upgrade the host's packages, as `apt-get --simulate dist-upgrade` does.
    UpdateCheck {
        /// Whose; the host's when absent.
        #[serde(default)]
        container: Option<ContainerName>,
    },
    /// Have apt fetch its lists of packages. The helper refuses this for a container: it would run the container's apt.
    UpdateRefresh {
        /// Where; on the host when absent.
        #[serde(default)]
        container: Option<ContainerName>,
    },
    /// Have apt upgrade packages, and print what it says and then what is different, a line each after `gatewren: `.
    UpdateApply(UpdateOrder),
    /// Print one of the files in which apt keeps what it did (`/var/log/apt/history.log`).
    UpdateHistory {
        /// Where; on the host when absent.
        #[serde(default)]
        container: Option<ContainerName>,
        /// How many files were begun since.
        file: u8,
    },
    /// Print lines of the host's journal, a JSON object a line, as `journalctl -o json` does.
    HostLog {
        /// Which.
        query: LogQuery,
    },
    /// The same of a running container's own journal, read by the host's `journalctl`.
    ContainerLog {
        /// Whose.
        container: ContainerName,
        /// Which.
        query: LogQuery,
    },
    /// Print the boots that the host's journal knows, as `journalctl --list-boots` does.
    HostBoots {},
    /// The same of a running container's own journal, read by the host's `journalctl`.
    ContainerBoots {
        /// Whose.
        container: ContainerName,
    },
    /// Print the host's processes that use most, with what they use, as JSON
    /// ([`Processes`](super::processes::Processes)).
    HostProcesses {
        /// Of what they use most.
        order: ProcessOrder,
        /// How many.
        most: u32,
    },
    /// Have the host's systemd change a unit, and print what it answers, as `busctl --json=short` does: of what takes
    /// time, the job's object path.
    UnitChange {
        /// Which.
        unit: UnitName,
        /// How.
        change: UnitChange,
    },
    /// Print the units of a running container's own systemd, a unit a line, as `systemctl list-units` does.
    ContainerUnitList {
        /// Whose.
        container: ContainerName,
    },
    /// Print what a running container's own systemd says of one unit, a property a line.
    ContainerUnit {
        /// Whose.
        container: ContainerName,
        /// Which.
        unit: UnitName,
    },
    /// Have a running container's own systemd change a unit, and wait until it has.
    ContainerUnitChange {
        /// Whose.
        container: ContainerName,
        /// Which.
        unit: UnitName,
        /// How.
        change: UnitChange,
    },
    /// Do another operation as a job: what it prints comes as it would without, but closing the connection leaves it
    /// running, and it can be asked after. The caller knows by the frame `Started` that it is one.
    JobStart {
        /// The new job's id.
        job: JobId,
        /// The agent whose it is.
        owner: String,
        /// The tool that begins it.
        tool: String,
        /// Whether its caller is answered as soon as there is the job, and hears no more of it.
        #[serde(default)]
        detached: bool,
        /// What to do.
        operation: Box<Self>,
    },
    /// Print jobs as they stand ([`Job`](super::job::Job)), the newest first, a JSON object a line.
    JobList {
        /// Whose; everybody's when absent.
        #[serde(default)]
        owner: Option<String>,
        /// Which one; all of them when absent.
        #[serde(default)]
        job: Option<JobId>,
    },
    /// Wait until a job has ended, and print it.
    JobWait {
        /// Whose it is.
        owner: Option<String>,
        /// Which.
        job: JobId,
    },
    /// Print a piece of a job's output: a line of JSON ([`JobPiece`](super::job::JobPiece)), then the bytes.
    JobOutput {
        /// Whose it is.
        owner: Option<String>,
        /// Which.
        job: JobId,
        /// Where the piece begins, in bytes of the whole output.
        offset: u64,
        /// The most bytes of it.
        bytes: u32,
    },
    /// End a job, with everything that it has started, and print it.
    JobCancel {
        /// Whose it is.
        owner: Option<String>,
        /// Which.
        job: JobId,
    },
    /// Take a job away that has ended: nobody was told of it.
    JobForget {
        /// Whose it is.
        owner: Option<String>,
        /// Which.
        job: JobId,
    },
    /// Print each job that has ended while its caller did not listen, and then each that ends so, a JSON object a
    /// line, until the connection closes.
    JobEnds {},
    /// Print what stands in a directory of the host, as JSON ([`FileList`](super::host_files::FileList)).
    HostFileList(HostFileList),
    /// Look for files below a directory of the host, and print what was found as JSON
    /// ([`FileMatches`](super::host_files::FileMatches)).
    HostFileSearch(HostFileSearch),
    /// Print a line of JSON about a file of the host ([`FileFacts`](super::host_files::FileFacts)), and a part of it.
    HostFileRead(HostFileRead),
    /// Make or replace a file of the host, and print what was done as JSON
    /// ([`FileWritten`](super::host_files::FileWritten)).
    HostFileWrite(HostFileWrite),
    /// Look whether another machine answers, and print what came of it as JSON ([`Probed`](super::probe::Probed)).
    HostProbe(HostProbe),
    /// Print the firewall's rules, as `nft` has them in JSON (libnftables-json(5)).
    HostFirewall {},
    /// Count what a directory of the host holds, and print the sums of the directories below it: bytes, a tab, the
    /// path and a NUL each (`du`).
    HostDiskUsage(HostDiskUsage),
    /// Print what a disk says of itself, as `smartctl` has it in JSON; one that sleeps is not woken.
    HostSmart {
        /// Which.
        disk: DiskName,
    },
    /// Print ZFS's pools, a line each: name, health, size, bytes used and fragmentation, with tabs between (`zpool`).
    HostPools {},
    /// Print the errors of the devices of a file system of btrfs, as `btrfs` has them in JSON.
    HostBtrfs {
        /// Where it is mounted.
        path: String,
    },
    /// Look through a file system, an array or a pool for damage, repair what can be repaired, and print what came of it
    /// as JSON ([`Repaired`](super::repair::Repaired)).
    HostRepair(HostRepair),
    /// Change a setting of the host.
    HostSetting {
        /// Which, and to what.
        setting: HostSetting,
    },
    /// Look at the firmware of the host's devices, or renew it.
    Firmware {
        /// What.
        deed: FirmwareDeed,
    },
    /// Print `WireGuard`'s tunnels as a JSON list ([`Tunnel`](super::tunnels::Tunnel)).
    HostTunnels {},
    /// Do something with backups, or look at them.
    Backup {
        /// What.
        deed: BackupDeed,
    },
    /// Bring up a tunnel that has a profile.
    HostTunnelUp {
        /// Which.
        tunnel: TunnelName,
    },
    /// Take one down.
    HostTunnelDown {
        /// Which.
        tunnel: TunnelName,
    },
    /// Look at wireless networks, or change which is joined.
    Wifi {
        /// What.
        deed: WifiDeed,
    },
    /// Say which name servers the host asks.
    SetNameServers {
        /// Which; those that the network says when there are none.
        servers: NameServers,
    },
    /// Look at the SSH keys of the accounts that the owner's file names, or change them.
    SshKeys {
        /// What.
        deed: SshKeyDeed,
    },
    /// Send a letter to whom the owner's file names.
    Mail(Letter),
}

/// A directory whose contents are counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostDiskUsage {
    /// Its absolute path.
    pub path: String,
    /// How many levels below it are told apart.
    pub depth: u8,
}

/// When the box goes down, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PowerPlan {
    /// Seconds from now; so few that the answer could be lost become more.
    pub delay_s: u32,
    /// What those hear who are logged in.
    #[serde(default)]
    pub reason: Option<String>,
}
