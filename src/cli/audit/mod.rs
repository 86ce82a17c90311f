//! `gatewren audit`: shows what was done by whom, and verifies that the audit was not altered.

mod anchors;
mod calls;
mod entry;
mod export;
mod print;
mod verify;

pub use entry::{AuditArgs, run};
