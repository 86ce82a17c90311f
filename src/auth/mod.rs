//! Who is asking: tokens, and the agents that they belong to.
#![forbid(unsafe_code)]

mod agents;
mod bootstrap;
mod principal;
mod token;

pub use agents::{Agents, AuthError};
pub use bootstrap::bootstrap;
pub use principal::{AgentId, Principal};
pub use token::{MalformedToken, Token, TokenHash};
