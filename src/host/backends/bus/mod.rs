//! A client for the system bus (D-Bus), on which systemd and related services answer calls and signal changes.

mod address;
mod connection;
mod error;
mod message;
mod reader;
mod system;
mod value;

pub use message::{BusMessage, BusObject};
pub use system::{BusSignals, Properties, SystemBus};
pub use value::{Argument, BusValue};
