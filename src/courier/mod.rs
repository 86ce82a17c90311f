//! Carries words to the owner over the channels of the settings: ntfy, a web-hook.
#![forbid(unsafe_code)]

mod allowance;
mod carry;
mod error;
mod message;
mod post;

pub use carry::Courier;
pub use error::{NotSent, Undelivered};
pub use message::{Message, Priority, Source};
pub use post::deliver;
