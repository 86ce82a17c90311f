//! The usage of the host and its containers over time, and one look that explains why a container is slow.

pub mod answer;
pub mod diagnose;
pub mod evidence;
pub mod findings;
pub mod log_excerpt;
pub mod resources;
pub mod table;
pub mod tools;
