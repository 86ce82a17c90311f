//! systemd's units over the system bus: queries, changes and events.

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

pub use events::{ChangedUnits, UnitEvents};
pub use files::UnitFileState;
pub use manager::Systemd;
pub use unit::{Unit, UnitLine, UnitStatus};
pub use units::SystemdUnits;
pub use view::SystemdView;
