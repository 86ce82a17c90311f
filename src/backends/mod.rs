//! Typed views of the box, each over the helper's client.
#![forbid(unsafe_code)]

mod error;
mod host;
mod lxc;
mod os_release;
mod source;

pub use error::{BackendError, ErrorKind};
pub use host::{
    Cpu, DiskTraffic, Gatewren, Host, InterfaceAddress, Metrics, Mount, NetworkTraffic, Pressure,
    ServerInfo, Space, Temperature,
};
pub use lxc::{ContainerDetails, ContainerEvents, ContainerState, ContainerStatus, Lxc};
pub use os_release::OsRelease;

pub use crate::helper_client::ContainerName;
