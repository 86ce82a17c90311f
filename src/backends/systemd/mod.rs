//! systemd's units: which there are, how they stand, and what changes them, over the system bus.

mod events;
mod files;
mod inside;
mod interface;
mod jobs;
mod manager;
mod properties;
mod unit;
mod units;
mod view;

pub use events::{UnitEvents, UnitNews};
pub use files::UnitFileState;
pub use manager::Systemd;
pub use unit::{Unit, UnitLine, UnitStatus};
pub use units::SystemdUnits;
pub use view::SystemdView;
