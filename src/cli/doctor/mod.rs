//! `gatewren doctor`: looks at everything that can stand between an owner and a working gatewren.

mod agents;
mod backups;
mod call;
mod certificate;
mod container;
mod entry;
mod finding;
mod machine;
mod reach;
mod service;
mod stores;

pub use entry::{Args, run};
