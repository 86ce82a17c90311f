//! Authentication: tokens and their agents, the owner's password and logins, and the identity token of a proxy.
#![forbid(unsafe_code)]

mod access_end;
mod agent_status;
mod agents;
mod bootstrap;
mod command_prefix;
mod device;
mod edge;
mod error;
#[cfg(feature = "everything")]
mod fixed_token;
mod grants;
mod guesses;
mod jwks;
mod links;
mod lockout;
mod login_error;
mod logins;
mod one_time_code;
mod owner_key;
mod pairing;
mod password;
mod principal;
mod scrapers;
mod token;

pub use access_end::AccessEnd;
pub use agent_status::{policy_of, reach_of};
pub use agents::Agents;
pub use bootstrap::{AgentSpec, add_agent, bootstrap, rotate_token};
pub use command_prefix::CommandPrefix;
pub use device::DEVICE_COOKIE_S;
pub use edge::{EdgeError, EdgeRules};
pub use error::AuthError;
#[cfg(feature = "everything")]
pub use fixed_token::FixedToken;
pub use grants::GrantedCall;
pub use jwks::KeySet;
pub use links::{IssuedTokens, LinkError, Links, OwnerConsent, TokenRequest};
pub use login_error::{LoginError, SetUpError};
pub use logins::{LoginHolder, LoginKey, Logins, OwnerCookies, PasswordAttempt};
pub use one_time_code::make_code;
pub use owner_key::{make_owner_key, open_owner_key, rewrap_with_password};
pub use pairing::{name_of_pairing, open_pairing, redeem_pairing};
pub use password::hash_password;
pub use principal::{AgentId, Principal};
pub use scrapers::{Scrapers, mint_metrics_token};
pub use token::is_token;
