//! systemd's units: which there are, how they stand, and what changes them, over the system bus.

mod events;
mod files;
mod interface;
mod manager;
mod name;
mod properties;
mod unit;
mod view;

pub use events::{UnitEvents, UnitNews};
pub use files::UnitFileState;
pub use manager::Systemd;
pub use name::UnitName;
pub use unit::{Unit, UnitLine, UnitStatus};
pub use view::SystemdView;
