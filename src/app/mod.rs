//! Builds the house and keeps it running.
#![forbid(unsafe_code)]

mod build;
#[cfg(feature = "everything")]
mod fixtures;
mod front;
mod house;
mod lifecycle;
mod names;
mod serving;
mod signals;
mod watchdog;

pub use build::{BuildError, HelperPlan, Plan, build};
#[cfg(feature = "everything")]
pub use fixtures::{FixturePlan, Fixtures, run_fixtures};
pub use front::Front;
pub use house::House;
pub use lifecycle::{open_sockets, run};
pub use serving::Serving;
