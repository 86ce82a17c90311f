//! Typed access to the host for the tools, through the helper; knows none of its callers.
#![forbid(unsafe_code)]

mod access_filter;
mod backups;
mod bus;
mod error;
mod files;
mod firmware;
mod helper_capabilities;
mod host;
mod job_ends;
mod job_piece;
mod job_status;
mod jobs;
mod journal;
mod logins;
mod long_work;
mod lxc;
mod machine_changes;
mod mail;
mod network;
mod os_release;
mod outcome;
mod power;
mod processes;
mod records;
mod request;
mod settings;
mod shell;
mod side_by_side;
mod source;
mod ssh;
mod storage;
mod stored_outputs;
mod systemd;
mod unread;
mod update_applied;
mod update_check;
mod update_history;
mod update_plan;
mod update_run;
mod update_survey;
mod updates;

pub use backups::{Backups, BackupsView, NewBackup};
pub use bus::SystemBus;
pub use error::{BackendError, ErrorKind};
pub use files::{FilePart, HostFiles};
pub use helper_capabilities::HelperCapabilities;
pub use host::{
    DataLocation, Disk, DiskContent, FilesystemUsage, Host, HostCounters, HostEvents, HostFacts,
    HostListener, HostMetrics, Interface, MountedFilesystem, Neighbor, NetworkTraffic, Partition,
    ReachableAddress, Route, ServerInfo, ServerTime, Temperature,
};
pub use job_piece::JobOutput;
pub use job_status::{JobStatus, JobStatusList};
pub use jobs::{Jobs, JobsView};
pub use journal::*;
pub use logins::{LoginEvent, LoginKind, LoginPeriod, LoginsFound, MachineLogins, PlacedLogin};
pub use long_work::{CallJob, JobObserver};
pub use lxc::{
    AwayRuntime, ChangedContainers, ContainerDefinition, ContainerDetails, ContainerEvents,
    ContainerListing, ContainerSnapshot, ContainerState, ContainerStatus, DirectoryPage,
    InsidePart, LogPart, LogSource, Lxc, LxcView, MeasuredVitals, MemberChange, MemberOutcome,
    NewFileContent, PART_BYTES, Stack, StackAction, StackListing, StackMember, StackRun,
    from_base64, limits_note,
};
pub use machine_changes::{
    ChangedFile, ChangedFiles, MachineChanges, MachineChangesFound, MachinePackages, PackageChange,
};
pub use mail::Mail;
pub use network::{DnsAnswer, Firewall, Naming, Network, PingAnswer, PortAnswer};
pub use outcome::ShellOutcome;
pub use power::{Power, PowerAction};
pub use processes::{Process, Processes, TopProcesses};
pub use settings::{CompressedSwap, Governors, HostConfiguration, HostSettings};
pub use shell::{Shell, ShellCall};
pub use ssh::Ssh;
pub use storage::{CleanupRequest, DiskHealth, DiskReport, DiskReports, DiskUsage, Storage};
pub use stored_outputs::{KEPT_FOR, StoredOutputs};
pub use systemd::{
    ChangedUnits, Systemd, SystemdUnits, SystemdView, Unit, UnitEvents, UnitFileState, UnitLine,
    UnitStatus,
};

pub use firmware::{Firmware, FirmwareCheck, FirmwareUpdateResult};
pub use unread::UnreadSource;
pub use update_applied::UpdateApplied;
pub use update_check::{UpdateCheck, UpdatePage};
pub use update_history::UpdateHistory;
pub use update_plan::{ApprovedUpdate, UpdatePlan};
pub use update_run::{UpdateRunRequest, UpdateRunResult};
pub use updates::{Updates, UpgradeRequest};

pub use crate::helper_client::{
    Backup, BackupId, BackupKeep, BackupSubject, BackupTarget, BootName, CapturedOutput,
    CleanupOrder, CleanupResult, ComposeService, ContainerDelays, ContainerHealth, ContainerImage,
    ContainerListener, ContainerRef, ContainerStorage, ContainerUsage, CountryCode, CreatedBackup,
    DefinitionChanges, DeletedBackup, EngineDescription, EngineFacts, EngineMountFacts, FileEntry,
    FileFacts, FileMatch, FileWritten, Fingerprint, FirmwareId, HostDiskUsage, HostFileList,
    HostFileRead, HostFileSearch, HostName, HostRepair, HostSetting, InsidePath, JobId, Keyboard,
    KillReason, LogCursor, LogFile, LogOrder, LogPattern, LogPriority, LogQuery, MAX_CLEANUP_ITEMS,
    MailMessage, MeasuredContainer, MovedContainer, NameServers, PackageName, ProcessOrder,
    Program, PublicKey, RepairResult, RestoredContainer, RuntimeReport, SettingWord, SnapshotName,
    SshAccount, SshKeyChange, Ssid, StackRef, StoreName, TargetName, Transport, Tunnel, TunnelName,
    UnitChange, UnitName, UnreadableTarget, UpdateProtection, UpdateScope, VerifiedBackup, Vitals,
    WifiAction, WifiNetwork, WifiStatus,
};
pub use gatewren_base::config::{Glob, InvalidGlob, RuntimeKind};
pub use gatewren_base::sys::neutralise;

#[cfg(test)]
mod lab;
#[cfg(test)]
pub(crate) use lab::ContainerLab;
