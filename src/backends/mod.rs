//! Typed views of the box for the tools; each speaks to the helper and knows nobody above.
#![forbid(unsafe_code)]

mod ask;
mod bounds;
mod bus;
mod elsewhere;
mod error;
mod files;
mod host;
mod job_piece;
mod job_standing;
mod jobs;
mod journal;
mod lxc;
mod network;
mod os_release;
mod outcome;
mod power;
mod processes;
mod shell;
mod source;
mod storage;
mod systemd;
mod threshold;
mod updates;

pub use bounds::Bounds;
pub use bus::SystemBus;
pub use error::{BackendError, ErrorKind};
pub use files::{FilePart, Files};
pub use host::{
    Content, Data, Disk, Fullness, Host, HostEvents, HostFacts, HostListener, Interface, Metrics,
    Mounted, Neighbor, NetworkTraffic, Partition, ReachableAddress, Route, ServerInfo, ServerTime,
    Temperature,
};
pub use job_piece::JobOutput;
pub use job_standing::{JobStanding, JobStandings};
pub use jobs::{Jobs, JobsView};
pub use journal::{Boot, Journal, LogLine, LogMoment, LogPage, LogSearch};
pub use lxc::{
    ContainerDetails, ContainerEvents, ContainerNews, ContainerState, ContainerStatus, Lxc, LxcView,
};
pub use network::{DnsAnswer, Firewall, Naming, Network, PingAnswer, PortAnswer};
pub use outcome::ShellOutcome;
pub use power::{Down, Power};
pub use processes::{Processes, TopProcesses};
pub use shell::{Shell, ShellCall};
pub use storage::{DiskUsage, Storage};
pub use systemd::{
    Systemd, SystemdUnits, SystemdView, Unit, UnitEvents, UnitFileState, UnitLine, UnitNews,
    UnitStatus,
};

pub use updates::{UpdateCheck, Updates};

pub use crate::config::{Glob, InvalidGlob};
pub use crate::helper_client::{
    BootName, ContainerName, FileEntry, FileFacts, FileMatch, FileWritten, HostDiskUsage,
    HostFileSearch, JobId, Listener, LogCursor, LogOrder, LogPattern, LogPriority, LogQuery,
    ProcessOrder, Program, Transport, UnitChange, UnitName, Usage, Vitals,
};
pub use crate::sys::neutralise;

#[cfg(test)]
mod lab;
#[cfg(test)]
pub use lab::Lab;
