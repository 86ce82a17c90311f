//! Sends messages to the owner over the channels of the settings: ntfy, webhook, mail.
#![forbid(unsafe_code)]

mod allowance;
mod carry;
mod error;
mod message;
mod outbox;
mod post;

pub use allowance::Allowance;
pub use carry::Courier;
pub use error::NotSent;
pub use message::{Message, Priority, Source};
pub use outbox::{Entry, Outbox};
pub use post::deliver;
