//! `gatewren agent`: who may come in, with what token, allowed what.

mod add;
mod changes;
mod edit;
mod entry;
mod expiry;
mod house;
mod limits;
mod list;
mod name;
mod revoke;
mod rotate;
mod show;
mod space;
mod standing;

pub use entry::{Args, run};
