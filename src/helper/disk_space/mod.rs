//! Disk space: what takes it, what can be deleted, and deleting that.

pub mod cleanup;
mod container_items;
pub mod container_report;
mod host_items;
pub mod host_report;
mod kernels;
pub mod measure;
mod overlay_root;
