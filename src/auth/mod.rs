//! Who is asking: tokens, and the agents that they belong to.
#![forbid(unsafe_code)]

mod agents;
mod bootstrap;
mod error;
#[cfg(feature = "everything")]
mod fixed;
mod grants;
mod principal;
mod standing;
mod token;

pub use agents::Agents;
pub use bootstrap::{Admission, add_agent, bootstrap, rotate_token};
pub use error::AuthError;
#[cfg(feature = "everything")]
pub use fixed::FixedToken;
pub use principal::{AgentId, Principal};
pub use standing::{policy_of, reach_of};
