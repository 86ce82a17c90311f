//! What is remembered and secret: agents, sessions, tasks, the inbox, keys and the audit, in one SQLite file of our own.
#![forbid(unsafe_code)]

mod agents;
mod audit;
mod audit_call;
mod audit_columns;
mod audit_entry;
mod audit_reader;
mod audit_row;
mod audit_schema;
mod chain;
mod change;
mod change_runs;
mod changes;
mod checkpoint;
mod commit;
mod error;
mod grants;
mod ids;
mod keys;
mod logins;
mod migration;
mod offer;
mod open;
mod owner;
mod redact;
mod row;
mod sessions;
mod shared;
mod store;
mod subscriptions;
mod tail;
mod tasks;
mod trim;
mod writer;

pub use agents::{Agent, NewAgent};
pub use audit::Promise;
pub use audit_call::{AuditCall, Wanted as AuditWanted};
pub use audit_entry::{AuditId, Entry, Outcome};
pub use audit_reader::{AuditReader, Beginning as AuditBeginning, Line as AuditLine};
pub use chain::{Chain, Fault};
pub use change::{Change, ChangeStatus, NewChange};
pub use change_runs::{Begun, ChangeEnd, KEPT_MS as CHANGE_KEPT_MS};
pub use changes::{Added, ChangeRoom, Decision, Ruling};
pub use checkpoint::hex;
pub use error::VaultError;
pub use grants::{Grant, NewGrant};
pub use logins::{Login, NewLogin, OWNER, Stay};
pub use offer::OfferedTool;
pub use owner::{Guesses, StoredPassword};
pub use redact::redact;
pub use sessions::{SessionUse, StateSeen, StoredSession};
pub use store::Vault;
pub use subscriptions::Subscription;
pub use tasks::{TaskEnd, TaskRoom, TaskRow, WORKING as TASK_WORKING};
pub use trim::Retention as AuditRetention;

#[cfg(feature = "fuzzing")]
pub use redact::redact_text;
