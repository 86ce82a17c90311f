//! `gatewren agent`: manages the agents, their tokens and their policies.

mod add;
mod edit;
mod entry;
mod house;
mod limits;
mod list;
mod revoke;
mod rotate;
mod show;
mod wanted;

pub use entry::{AgentArgs, run};
pub use wanted::NewAgentArgs;
