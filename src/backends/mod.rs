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
pub use host::{Host, Metrics, Mount, ServerInfo};
pub use lxc::{
    ContainerDetails, ContainerEvents, ContainerNews, ContainerState, ContainerStatus, Lxc,
};
pub use neutral::neutralise;
pub use outcome::ShellOutcome;
pub use shell::{Shell, ShellCall};

pub use crate::helper_client::{ContainerName, Listener, Program, Transport, Usage, Vitals};

#[cfg(test)]
mod lab;
#[cfg(test)]
pub use lab::Lab;
