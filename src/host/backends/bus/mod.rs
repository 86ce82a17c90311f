//! The system bus (D-Bus), on which systemd and related services answer calls and signal changes.

mod address;
mod socket;
mod system;

pub use system::{BusObject, BusSignals, Properties, SystemBus};
