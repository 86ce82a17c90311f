//! The code that benchmarks share: the servers and their anchor, a measuring client, figures and their spread.

pub mod args;
pub mod balancer;
pub mod bare;
pub mod connection;
pub mod floor;
pub mod follower;
pub mod foreign;
pub mod guard;
pub mod load;
pub mod machine;
pub mod owner;
pub mod pair;
pub mod peers;
pub mod servers;
pub mod spread;
pub mod start;
pub mod subscribers;
pub mod wire;

/// An error that ends a run.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
