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
pub use agents::keys::{STATE_AUTHOR_KEY, SecretKey};
pub use agents::logins::{Login, LoginLifetime, NewLogin, OWNER};
pub use agents::names::NameHolder;
pub use agents::oauth_clients::OauthClient;
pub use agents::oauth_links::{
    ACCESS_MS as OAUTH_ACCESS_MS, CodeRedemption, ExchangeOutcome, NewLink, NewTokens, TokenRenewal,
};
pub use agents::owner::{FailedGuesses, StoredPassword};
pub use agents::owner_key::{KeyChange, OwnerKey, WrappedKey};
pub use agents::table::{Agent, NewAgent, check_agent_name};
pub use audit::anchors::{AnchorComparison, Anchors, DiscrepancyKind};
pub use audit::call::{AuditCall, CallFilter};
pub use audit::chain::{ChainFault, ChainVerification};
pub use audit::checkpoint::hex;
pub use audit::entry::{AuditEntry, AuditId, AuditOutcome};
pub use audit::exact::{ExactArguments, SealedArgumentsCount};
pub use audit::hours::HourOfCalls;
pub use audit::reader::{AuditExportHeader, AuditLine, AuditReader};
pub use audit::readers::AuditReaders;
pub use audit::sealing::{KeyPair, OpeningKey};
pub use audit::table::{AuditTable, ReadRecord, WrittenIntent};
pub use audit::trim::AuditRetention;
pub use audit::uses::{AgentUse, CallCounts};
pub use error::VaultError;
pub use owner_action::{OwnerAction, RecordedAction};
pub use store::Vault;
pub use work::change::{Change, ChangeStatus, NewChange, arguments_sha256};
pub use work::change_runs::{ChangeEnd, KEPT_MS as CHANGE_KEPT_MS, StartedChange};
pub use work::changes::{Decision, DecisionOutcome, OpenChangeLimits, ProposalOutcome};
pub use work::doctor_report::{DoctorFinding, DoctorReport};
pub use work::offered_tools::OfferedTool;
pub use work::poll::{PolledRow, VaultPoller, WaitingChange};
pub use work::push_devices::{
    MAX_PUSH_DEVICES, NewPushDevice, PageNtfy, PushDevice, PushDeviceTable,
};
pub use work::schedule::{NewSchedule, Schedule};
pub use work::schedule_runs::{DueRun, RunEnd, RunOutcome, RunTurn, ScheduleRun, StartedRun};
pub use work::schedules::{MAX_SCHEDULES_OF_AGENT, ScheduleCreation};
pub use work::sessions::{SeenRevision, SessionUse, StoredSession};
pub use work::subscriptions::Subscription;
pub use work::tasks::{StoredTaskLimits, TaskEnd, TaskRow, WORKING as TASK_WORKING, task_id};
pub use work::watches::{
    AddedWatch, MAX_WATCHES, MAX_WATCHES_OF_AGENT, NewWatch, StoredWatch, WatchRef, WatchTable,
};
