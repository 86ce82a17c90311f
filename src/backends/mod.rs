//! Typed views of the box for the tools; each speaks to the helper and knows nobody above.
#![forbid(unsafe_code)]

mod error;
mod host;
mod lxc;
mod neutral;
mod os_release;
mod outcome;
mod shell;
mod source;

pub use error::{BackendError, ErrorKind};
pub use host::{
    Cpu, DiskTraffic, Gatewren, Host, InterfaceAddress, Metrics, Mount, NetworkTraffic, Pressure,
    ServerInfo, Space, Temperature,
};
pub use lxc::{ContainerDetails, ContainerEvents, ContainerState, ContainerStatus, Lxc};
pub use neutral::neutralise;
pub use os_release::OsRelease;
pub use outcome::ShellOutcome;
pub use shell::{Shell, ShellCall};

pub use crate::helper_client::{ContainerName, InvalidName, Program};

#[cfg(test)]
mod lab;
#[cfg(test)]
pub use lab::Lab;
