//! Tools about containers.

pub mod copies;
pub mod files;
pub mod lifecycle;
pub mod logs;
pub mod moves;
pub mod settings;
pub mod stacks;
