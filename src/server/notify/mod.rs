//! Sends messages to the owner over the channels of the settings: ntfy, webhook, mail.
#![forbid(unsafe_code)]

mod allowance;
mod deliver;
mod error;
mod message;
mod retry_queue;
mod sender;

pub use allowance::Allowance;
pub use deliver::Courier;
pub use error::NotSent;
pub use message::{Message, Priority, Source};
pub use retry_queue::{Entry, Outbox};
pub use sender::deliver;
