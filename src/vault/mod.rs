//! What is remembered and secret: agents, sessions, tasks, keys and the audit, in one SQLite file of our own.
#![forbid(unsafe_code)]

mod agents;
mod audit;
mod chain;
mod commit;
mod error;
mod ids;
mod keys;
mod migration;
mod open;
mod redact;
mod row;
mod sessions;
mod shared;
mod store;
mod subscriptions;
mod tail;
mod tasks;
mod writer;

pub use agents::{Agent, NewAgent};
pub use audit::{AuditId, Entry, Outcome, Promise};
pub use chain::{Chain, Fault};
pub use error::VaultError;
pub use redact::redact;
pub use sessions::{SessionUse, StateSeen, StoredSession};
pub use store::Vault;
pub use subscriptions::Subscription;
pub use tasks::{TaskEnd, TaskRoom, TaskRow, WORKING as TASK_WORKING};

#[cfg(feature = "fuzzing")]
pub use redact::redact_text;
