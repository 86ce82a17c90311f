//! `gatewren schedule`: the calls that agents have scheduled.

mod entry;
mod print;

pub use entry::{ScheduleArgs, run};
