//! The owner's actions, shared by the command line and the page, and recorded in the audit.
#![forbid(unsafe_code)]

mod address;
mod agent_changes;
mod agent_name;
mod agent_space;
mod agents;
mod batch;
mod call_status;
mod clients;
mod expiry;
mod grant;
mod hand;
mod logins;
mod loosening;
mod moment;
mod movement;
mod outlook;
mod pairing;
mod plain;
mod ruling;
mod scraping;
mod snippets;
mod span;
mod standing;
mod told;
mod trusting;

pub use address::reached_at;
pub use agent_changes::{between as changes_between, lines as change_lines};
pub use agent_name::{find as find_agent, find_active as find_active_agent, fit as fit_name};
pub use agent_space::chosen as chosen_space;
pub use agents::{admit, edit, revoke, rotate};
pub use batch::Batch;
pub use call_status::CallStatus;
pub use expiry::{DEFAULT_EXPIRY, Expiry, expires_soon, valid_until};
pub use grant::{GrantWish, end_grant, grant, granted_words, is_broad, known_tool, takes_command};
pub use hand::{Deed, Hand};
pub use logins::{KeyPlan, sealed_calls, set_password, sign_out, sign_out_everywhere};
pub use loosening::loosens;
pub use moment::Moment;
pub use movement::{Movement, movement};
pub use outlook::Outlook;
pub use pairing::{pair, redeem as redeem_pairing};
pub use plain::plain;
pub use ruling::{Ruled, Verb, rule};
pub use scraping::{end_metrics_token, renew_metrics_token};
pub use snippets::{AUTHORITY_FILE, Snippet, Way, client_words, snippets};
pub use span::Span;
pub use standing::standing;
pub use told::{change_arguments, exact_arguments, export_header, result_text, shown_change};
pub use trusting::{AUTHORITY_PEM, How, SYSTEMS, Trusting};

pub use crate::policy::ShownArgument;
