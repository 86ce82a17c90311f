//! `gatewren doctor`: checks everything that can prevent gatewren from working.

mod agents;
mod backups;
mod call;
mod certificate;
mod container;
mod entry;
mod finding;
mod fronts;
mod helper_policy;
mod machine;
mod reach;
mod runtimes;
mod schedules;
mod service;
mod stores;
mod watches;
mod workers;

pub use entry::{DoctorArgs, run};
