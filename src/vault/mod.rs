//! What is remembered and secret: agents, logins, sessions, tasks, the inbox, keys and the audit, in one SQLite file of
//! our own.
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
mod deed;
mod error;
mod glance;
mod grants;
mod ids;
mod job;
mod keys;
mod logins;
mod metrics_token;
mod migration;
mod oauth_clients;
mod oauth_links;
mod offer;
mod open;
mod owner;
mod pairings;
mod queue;
mod row;
mod row_job;
mod sessions;
mod shared;
mod store;
mod subscriptions;
mod tail;
mod tasks;
mod trim;
mod watch;
mod writer;

pub use agents::{Agent, NewAgent};
pub use audit::Promise;
pub use audit_call::{AuditCall, Wanted as AuditWanted};
pub use audit_entry::{AuditId, Entry, Outcome};
pub use audit_reader::{AuditReader, Beginning as AuditBeginning, Line as AuditLine};
pub use chain::{Chain, Fault};
pub use change::{Change, ChangeStatus, NewChange, arguments_sha256};
pub use change_runs::{Begun, ChangeEnd, KEPT_MS as CHANGE_KEPT_MS};
pub use changes::{Added, ChangeRoom, Decision, Ruling};
pub use checkpoint::hex;
pub use deed::{Deed, Undertaking};
pub use error::VaultError;
pub use glance::{Glance, Step, Waiting};
pub use grants::{Grant, GrantBound, NewGrant};
pub use logins::{Login, NewLogin, OWNER, Stay};
pub use oauth_clients::OauthClient;
pub use oauth_links::{
    ACCESS_MS as OAUTH_ACCESS_MS, Exchanged, NewLink, NewTokens, Redemption, Renewal,
};
pub use offer::OfferedTool;
pub use owner::{Guesses, StoredPassword};
pub use pairings::Paired;
pub use sessions::{SessionUse, StateSeen, StoredSession};
pub use store::Vault;
pub use subscriptions::Subscription;
pub use tasks::{TaskEnd, TaskRoom, TaskRow, WORKING as TASK_WORKING};
pub use trim::Retention as AuditRetention;
