//! The protocol between the front and the helper: operations one way, frames the other.
#![forbid(unsafe_code)]

mod arguments;
mod audit_head;
mod backup;
mod backup_facts;
mod backup_keep;
mod cleanup;
mod command;
mod container_action;
mod container_paths;
mod container_ref;
mod container_storage;
mod device;
mod engine_facts;
mod firmware;
mod frame;
mod host_files;
mod host_setting;
mod host_view;
mod job;
mod limits;
mod log_query;
mod name_servers;
mod operation;
mod operation_facts;
mod operation_queries;
mod outcome;
mod overview;
mod owner_message;
mod probe;
mod processes;
mod reaper_messages;
mod refusal;
mod repair;
mod request;
mod runtime_report;
mod snapshot_name;
mod ssh_keys;
mod stack_ref;
mod system_record;
mod text_type;
mod tunnels;
mod unit_change;
mod unit_name;
mod update;
mod vitals;
mod wifi;

pub use arguments::{HostDiskUsage, PowerPlan};
pub use audit_head::AuditHead;
pub use backup::{BackupAction, BackupId, BackupSubject, TargetName};
pub use backup_facts::{
    ArchiveFormat, Backup, BackupList, BackupPart, BackupPartKind, BackupTarget, CreatedBackup,
    DeletedBackup, RestoredContainer, TargetKind, UnreadableTarget, VerifiedBackup,
};
pub use backup_keep::BackupKeep;
pub use cleanup::{
    CLEANUP_MARK, CleanupFinding, CleanupItem, CleanupOrder, CleanupResult, ContainerDiskReport,
    ContainerSize, DUMP_DIRECTORIES, DirectorySize, DiskCleanup, DumpPath, EngineDiskUse,
    HostDiskReport, ImageDigest, KernelRelease, MAX_CLEANUP_ITEMS, VolumeName,
};
pub use command::{Command, Program};
pub use container_action::{
    ContainerAction, DefinitionChanges, FileExcerpt, LogFile, PrintedHeader, PrintedLine,
    SnapshotFacts,
};
pub use container_paths::{InsideEntry, InsideKind, InsidePath};
pub use container_ref::ContainerRef;
pub use container_storage::{ContainerStorage, MovedContainer, StoreFacts, StoreName};
pub use device::{DiskName, TunnelName};
pub use engine_facts::{
    ComposeDependency, ComposeService, ContainerHealth, ContainerImage, DependencyCondition,
    EngineFacts, EngineMountFacts, PublishedPort,
};
pub use firmware::{FIRMWARE_MARK, FirmwareAction, FirmwareId};
pub use frame::{Decoder, Frame, MAX_FRAME_BYTES, Stream};
pub use gatewren_base::sys::Requester;
pub use host_files::{
    FileEntry, FileFacts, FileKind, FileList, FileMatch, FileMatches, FileWritten, HostFileList,
    HostFileRead, HostFileSearch, HostFileWrite,
};
pub use host_setting::{HostName, HostSetting, Keyboard, SettingWord};
pub use host_view::HostView;
pub use job::{Job, JobId, JobOutputHeader};
pub use limits::OperationLimits;
pub use log_query::{BootName, LogCursor, LogOrder, LogPattern, LogPriority, LogQuery};
pub use name_servers::NameServers;
pub use operation::Operation;
pub use operation_facts::{OperationFacts, TimeClass};
pub use outcome::{KillReason, OperationEnd};
pub use overview::OverviewEntry;
pub use owner_message::{
    MailMessage, SUBJECT_BYTES as LETTER_SUBJECT_BYTES, TEXT_BYTES as LETTER_TEXT_BYTES,
};
pub use probe::{HostProbe, Probe, ProbeAnswer, ProbeResult};
pub use processes::{ProcessOrder, ProcessUsage, ProcessUsageList};
pub use reaper_messages::{MAX_LAUNCH_BYTES, MAX_REPORT_BYTES, ReaperLaunch, ReaperReport};
pub use refusal::{OperationRefusal, RefusalCode};
pub use repair::{HostRepair, RepairOutcome, RepairResult};
pub use request::{HelperRequest, Release};
pub use runtime_report::{EngineDescription, RuntimeReport};
pub use snapshot_name::SnapshotName;
pub use ssh_keys::{Fingerprint, PublicKey, SshAccount, SshKey, SshKeyAction, SshKeyChange};
pub use stack_ref::StackRef;
pub use system_record::{RECORD_BYTES, RecordHeader, SystemRecord};
pub use tunnels::{Tunnel, TunnelPeer};
pub use unit_change::UnitChange;
pub use unit_name::UnitName;
pub use update::{
    PackageName, PinnedPackage, UpdateOrder, UpdateProtection, UpdateRunOrder, UpdateScope,
    UpdateTarget, UpdateTargetReport, update_digest,
};
pub use vitals::{
    ContainerDelays, ContainerListener, ContainerUsage, MeasuredContainer, Transport, Vitals,
};
pub use wifi::{CountryCode, Ssid, WifiAction, WifiInterface, WifiNetwork, WifiStatus};
