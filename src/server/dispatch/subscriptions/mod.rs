//! Subscriptions: what a listener follows, and waiting for its events.

pub mod interests;
pub mod listen;
pub mod listener;
pub mod rare_events;
pub mod update_texts;
