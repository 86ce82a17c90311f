//! The system bus (D-Bus), on which systemd and its kin answer and say what changes.

mod address;
mod connection;
mod error;
mod message;
mod reader;
mod system;
mod value;

pub use message::{Message, Object};
pub use system::{Properties, Signals, SystemBus};
pub use value::{Argument, Value};
