//! Logins on the host and in containers, read from the records and messages of their programs.

mod combine;
mod event;
mod messages;
mod syslog;
mod utmp;
mod view;

pub use event::{LoginEvent, LoginKind};
pub use view::{LoginPeriod, LoginsFound, MachineLogins, PlacedLogin};
