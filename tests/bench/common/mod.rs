//! What the benchmarks share: the servers and their anchor, a client that counts, figures and their spread.

pub mod args;
pub mod bare;
pub mod connection;
pub mod floor;
pub mod follower;
pub mod foreign;
pub mod load;
pub mod machine;
pub mod pair;
pub mod peers;
pub mod servers;
pub mod spread;
pub mod start;
pub mod subscribers;
pub mod wire;

/// Whatever ends a run.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
