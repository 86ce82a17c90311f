//! Typed views of the box, each over the helper's client.
#![forbid(unsafe_code)]

mod host;

pub use host::{
    Cpu, Disk, Gatewren, Host, Interface, InterfaceAddress, Metrics, Mount, OsRelease, Pressure,
    ServerInfo, Space, Temperature,
};
