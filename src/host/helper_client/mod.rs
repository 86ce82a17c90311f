//! The front's client of the helper's socket: run an operation, follow it, drop it to kill it.
#![forbid(unsafe_code)]

mod address;
mod captured;
mod child;
mod error;
mod finished;
mod head_source;
mod helper;
mod in_process;
mod running;

pub use captured::{Capture, CapturedOutput};
pub use child::{ChildHelperOptions, HelperChild};
pub use error::HelperError;
pub use finished::{FinishedOperation, finish};
pub use helper::HelperClient;
pub use running::RunningOperation;

pub use gatewren_wire::operations::{
    AuditHead, Backup, BackupAction, BackupId, BackupKeep, BackupList, BackupSubject, BackupTarget,
    BootName, CLEANUP_MARK, CleanupFinding, CleanupItem, CleanupOrder, CleanupResult, Command,
    ComposeDependency, ComposeService, ContainerAction, ContainerDelays, ContainerDiskReport,
    ContainerHealth, ContainerImage, ContainerListener, ContainerRef, ContainerSize,
    ContainerStorage, ContainerUsage, CountryCode, CreatedBackup, DefinitionChanges, DeletedBackup,
    DependencyCondition, DirectorySize, DiskCleanup, DiskName, EngineDescription, EngineDiskUse,
    EngineFacts, EngineMountFacts, FIRMWARE_MARK, FileEntry, FileExcerpt, FileFacts, FileList,
    FileMatch, FileMatches, FileWritten, Fingerprint, FirmwareAction, FirmwareId, Frame,
    HostDiskReport, HostDiskUsage, HostFileList, HostFileRead, HostFileSearch, HostFileWrite,
    HostName, HostProbe, HostRepair, HostSetting, HostView, InsideEntry, InsidePath, Job, JobId,
    JobOutputHeader, Keyboard, KillReason, LogCursor, LogFile, LogOrder, LogPattern, LogPriority,
    LogQuery, MAX_CLEANUP_ITEMS, MailMessage, MeasuredContainer, MovedContainer, NameServers,
    Operation, OperationEnd, OperationLimits, OperationRefusal, OverviewEntry, PackageName,
    PinnedPackage, PowerPlan, PrintedHeader, PrintedLine, Probe, ProbeAnswer, ProbeResult,
    ProcessOrder, ProcessUsage, ProcessUsageList, Program, PublicKey, RecordHeader, RefusalCode,
    RepairResult, RestoredContainer, RuntimeReport, SettingWord, SnapshotFacts, SnapshotName,
    SshAccount, SshKeyAction, SshKeyChange, Ssid, StackRef, StoreName, Stream, SystemRecord,
    TargetName, Transport, Tunnel, TunnelName, UnitChange, UnitName, UnreadableTarget, UpdateOrder,
    UpdateProtection, UpdateRunOrder, UpdateScope, UpdateTarget, UpdateTargetReport,
    VerifiedBackup, Vitals, WifiAction, WifiNetwork, WifiStatus, update_digest,
};
