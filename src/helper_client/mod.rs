//! The front's end of the helper's socket: ask for one operation, hear how it goes, drop it to kill it.
#![forbid(unsafe_code)]

mod address;
mod captured;
mod child;
mod error;
mod finished;
mod helper;
mod running;

pub use captured::{Capture, Captured};
pub use child::{HelperChild, Told};
pub use error::HelperError;
pub use finished::{Finished, finish};
pub use helper::Helper;
pub use running::Running;

pub use crate::exec::{
    Answered, BootName, Changes, Command, ContainerName, Deed, DiskName, Ending, Excerpt,
    FileEntry, FileFacts, FileList, FileMatch, FileMatches, FileWritten, Frame, HostDiskUsage,
    HostFileList, HostFileRead, HostFileSearch, HostFileWrite, HostProbe, HostRepair, HostView,
    InsideEntry, InsidePath, Job, JobId, JobPiece, KillReason, Limits, Listener, LogCursor,
    LogFile, LogOrder, LogPattern, LogPriority, LogQuery, Operation, PowerPlan, Probe, Probed,
    ProcessOrder, ProcessSeen, Processes, Program, RefusalCode, Repaired, SnapshotFacts,
    SnapshotName, Stream, Transport, Tunnel, TunnelName, UnitChange, UnitName, Usage, Vitals,
};
