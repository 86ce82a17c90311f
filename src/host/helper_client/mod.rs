//! The front's client of the helper's socket: run an operation, follow it, drop it to kill it.
#![forbid(unsafe_code)]

mod address;
mod captured;
mod child;
mod error;
mod finished;
mod head_source;
mod helper;
mod running;

pub use captured::{Capture, Captured};
pub use child::{HelperChild, Told};
pub use error::HelperError;
pub use finished::{Finished, finish};
pub use helper::Helper;
pub use running::Running;

pub use gatewren_wire::operations::{
    Answered, AuditHead, Backup, BackupDeed, BackupId, BackupList, BackupTarget, BootName, Changes,
    Command, ContainerName, CountryCode, Deed, DiskName, Ending, Excerpt, FIRMWARE_MARK, FileEntry,
    FileFacts, FileList, FileMatch, FileMatches, FileWritten, Fingerprint, FirmwareDeed,
    FirmwareId, Frame, HostDiskUsage, HostFileList, HostFileRead, HostFileSearch, HostFileWrite,
    HostName, HostProbe, HostRepair, HostSetting, HostView, InsideEntry, InsidePath, Job, JobId,
    JobPiece, Keyboard, KillReason, Letter, Limits, Listener, LogCursor, LogFile, LogOrder,
    LogPattern, LogPriority, LogQuery, NameServers, Operation, PackageName, PowerPlan, Probe,
    Probed, ProcessOrder, ProcessSeen, Processes, Program, PublicKey, RefusalCode, Repaired,
    SettingWord, SnapshotFacts, SnapshotName, SshAccount, SshKeyChange, SshKeyDeed, Ssid, Stream,
    Subject, TargetName, Transport, Tunnel, TunnelName, UnitChange, UnitName, UnseenTarget,
    UpdateOrder, UpdateScope, Usage, Verified, Vitals, WifiDeed, WifiNetwork, WifiStatus,
};
