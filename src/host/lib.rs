//! The front's view of the host: the helper's client, typed views of the host, and the watchers.
#![forbid(unsafe_code)]

pub mod backends;
pub mod helper_client;
pub mod observer;
pub mod sampler;
