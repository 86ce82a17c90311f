//! A demo: an invented server, so that every page has content. Nothing of the host is shown or changed.

mod answers;
mod demo_server;
mod made_up;
mod noise;
mod past;
mod usage;
mod writer;

pub use demo_server::{answer_in_process, fill, marked};
