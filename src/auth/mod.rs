//! Who is asking: tokens, and the agents that they belong to.
#![forbid(unsafe_code)]

mod agents;
mod bootstrap;
#[cfg(feature = "everything")]
mod fixed;
mod grants;
mod principal;
mod token;

pub use agents::{Agents, AuthError};
pub use bootstrap::{add_agent, bootstrap};
#[cfg(feature = "everything")]
pub use fixed::FixedToken;
pub use principal::{AgentId, Principal};
