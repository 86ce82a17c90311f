//! The owner's actions, shared by the command line and the page, and recorded in the audit.
#![forbid(unsafe_code)]

mod address;
mod agent_changes;
mod agent_name;
mod agent_space;
mod agents;
mod batch;
mod call_status;
mod client_files;
mod clients;
mod container_commands;
mod decision;
mod duration;
mod expiry;
mod grant;
mod install_link;
mod logins;
mod metrics_token;
mod more_access;
mod owner_context;
mod pairing;
mod policy_preview;
mod render;
mod schedules;
mod setup_step;
mod setup_steps;
mod snippet_connection;
mod snippets;
mod staleness;
mod timestamp;
mod token_status;
mod trust_ca;
mod unguarded;

pub use address::reached_at;
pub use agent_changes::{between as changes_between, lines as change_lines};
pub use agent_name::{
    DOCTOR as DOCTOR_AGENT, find as find_agent, find_active as find_active_agent, fit as fit_name,
    fit_new as fit_new_name,
};
pub use agent_space::choose_space;
pub use agents::{admit, edit, revoke, rotate};
pub use batch::ChangeBatch;
pub use call_status::CallStatus;
pub use client_files::{ClientFileEdit, file_edits};
pub use clients::SnippetFormat;
pub use container_commands::{ContainerCommand, command_container};
pub use decision::{DecidedChange, OwnerDecision, decide_change};
pub use duration::HumanDuration;
pub use expiry::{DEFAULT_EXPIRY, Expiry, expires_soon, valid_until};
pub use grant::{
    GrantRequest, end_grant, grant, granted_words, is_broad, known_tool, takes_command,
};
pub use logins::{KeyPlan, sealed_calls, set_password, sign_out, sign_out_everywhere};
pub use metrics_token::{end_metrics_token, renew_metrics_token};
pub use more_access::gives_more_access;
pub use owner_context::{OwnerCommand, OwnerContext};
pub use pairing::{PairingRefusal, pair, redeem as redeem_pairing};
pub use policy_preview::PolicyPreview;
pub use render::{change_arguments, exact_arguments, export_header, result_text, shown_change};
pub use schedules::{delete_schedule, pause_schedule, run_schedule, schedule_words};
pub use setup_step::{SetupStep, StepKind};
pub use snippet_connection::{AUTHORITY_FILE, SnippetConnection, name_for_clients};
pub use snippets::{Snippet, client_names, client_words, snippets};
pub use staleness::{Staleness, find_staleness};
pub use timestamp::HumanTimestamp;
pub use token_status::token_status;
pub use trust_ca::{AUTHORITY_PEM, SYSTEMS, TrustGuide, TrustSteps};
pub use unguarded::UnguardedAgents;

pub use crate::policy::ShownArgument;
pub use gatewren_base::sys::sanitize;
