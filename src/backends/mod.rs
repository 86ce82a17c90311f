//! Typed views of the box for the tools; each speaks to the helper and knows nobody above.
#![forbid(unsafe_code)]

mod error;
mod neutral;
mod outcome;
mod shell;

pub use error::{BackendError, ErrorKind};
pub use neutral::neutralise;
pub use outcome::ShellOutcome;
pub use shell::{Shell, ShellCall};

pub use crate::helper_client::{ContainerName, InvalidName, Program};
