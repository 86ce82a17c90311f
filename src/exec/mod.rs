//! What the front and the helper say to each other: operations one way, frames the other.
#![forbid(unsafe_code)]

mod ending;
mod frame;
mod limits;
mod name;
mod operation;

pub use ending::{Ending, KillReason, RefusalCode};
pub use frame::{Frame, FrameError, MAX_FRAME_BYTES, Stream};
pub use limits::Limits;
pub use name::{ContainerName, InvalidName};
pub use operation::{Command, Operation, Program, Request};
