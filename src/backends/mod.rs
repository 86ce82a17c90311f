//! Typed views of the box for the tools; each speaks to the helper and knows nobody above.
#![forbid(unsafe_code)]

mod ask;
mod bounds;
mod bus;
mod error;
mod host;
mod lxc;
mod neutral;
mod os_release;
mod outcome;
mod power;
mod shell;
mod source;
mod systemd;
mod threshold;
mod updates;

pub use bounds::Bounds;
pub use bus::SystemBus;
pub use error::{BackendError, ErrorKind};
pub use host::{
    Content, Data, Disk, Fullness, Host, HostEvents, HostFacts, HostListener, Interface, Metrics,
    Mounted, Neighbor, NetworkTraffic, Partition, ReachableAddress, Route, ServerInfo, ServerTime,
    Temperature,
};
pub use lxc::{
    ContainerDefinition, ContainerDetails, ContainerEvents, ContainerNews, ContainerState,
    ContainerStatus, DirectoryPage, FilePart, LogPart, LogSource, Lxc, LxcView, PART_BYTES,
    Snapshot, from_base64,
};
pub use neutral::neutralise;
pub use outcome::ShellOutcome;
pub use power::{Down, Power};
pub use shell::{Shell, ShellCall};
pub use systemd::{
    Systemd, SystemdView, Unit, UnitEvents, UnitFileState, UnitLine, UnitName, UnitNews, UnitStatus,
};

pub use updates::{UpdateCheck, Updates};

pub use crate::config::{Glob, InvalidGlob};
pub use crate::helper_client::{
    Changes, ContainerName, InsidePath, Listener, LogFile, Program, SnapshotName, Transport, Usage,
    Vitals,
};

#[cfg(test)]
mod lab;
#[cfg(test)]
pub use lab::Lab;
