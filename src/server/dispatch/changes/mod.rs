//! The inbox: proposed changes, their tools and resources, and running those that the owner approved.

pub mod confirm;
pub mod executor;
pub mod inbox;
pub mod owner_approval;
pub mod owner_waits;
pub mod precondition;
pub mod proposal_target;
pub mod proposals;
pub mod propose;
pub mod resources;
pub mod task;
pub mod tools;
pub mod view;
