//! `gatewren agent`: manages the agents, their tokens and their policies.

mod add;
mod context;
mod edit;
mod entry;
mod limits;
mod list;
mod revoke;
mod rotate;
mod show;
mod wanted;

pub use entry::{AgentArgs, EXAMPLES, run};
pub use wanted::NewAgentArgs;
