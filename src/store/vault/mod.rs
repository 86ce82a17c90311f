//! Persistent and secret data in one SQLite file: agents, logins, sessions, tasks, the inbox, keys and the audit.
#![forbid(unsafe_code)]

mod agents;
mod audit;
mod commit;
mod error;
mod ids;
mod job;
mod migration;
mod open;
mod owner_action;
mod queue;
mod row;
mod shared;
mod store;
mod watch;
mod work;
mod writer;

pub use agents::grants::{Grant, GrantBound, NewGrant};
pub use agents::keys::STATE_AUTHOR_KEY;
pub use agents::logins::{Login, NewLogin, OWNER, Stay};
pub use agents::oauth_clients::OauthClient;
pub use agents::oauth_links::{
    ACCESS_MS as OAUTH_ACCESS_MS, Exchanged, NewLink, NewTokens, Redemption, Renewal,
};
pub use agents::owner::{Guesses, StoredPassword};
pub use agents::owner_key::{KeyChange, OwnerKey, WrappedKey};
pub use agents::pairings::Paired;
pub use agents::table::{Agent, NewAgent};
pub use audit::anchors::{Anchors, Compared, DiscrepancyKind};
pub use audit::call::{AuditCall, Wanted as AuditWanted};
pub use audit::chain::{Chain, Fault};
pub use audit::checkpoint::hex;
pub use audit::entry::{AuditId, Entry, Outcome};
pub use audit::exact::{Exact, ExactStanding};
pub use audit::reader::{AuditReader, Beginning as AuditBeginning, Line as AuditLine};
pub use audit::sealing::{KeyPair, OpeningKey};
pub use audit::table::Promise;
pub use audit::trim::Retention as AuditRetention;
pub use error::VaultError;
pub use owner_action::{Deed, Undertaking};
pub use store::Vault;
pub use work::change::{Change, ChangeStatus, NewChange, arguments_sha256};
pub use work::change_runs::{Begun, ChangeEnd, KEPT_MS as CHANGE_KEPT_MS};
pub use work::changes::{Added, ChangeRoom, Decision, Ruling};
pub use work::offered_tools::OfferedTool;
pub use work::poll::{Glance, Step, Waiting};
pub use work::sessions::{SessionUse, StateSeen, StoredSession};
pub use work::subscriptions::Subscription;
pub use work::tasks::{TaskEnd, TaskRoom, TaskRow, WORKING as TASK_WORKING};
