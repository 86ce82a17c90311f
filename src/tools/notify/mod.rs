//! Sends messages to the owner over the owner's channels: ntfy, webhook, mail, Web Push.
#![forbid(unsafe_code)]

mod allowance;
mod channels;
mod deliver;
mod error;
mod message;
mod push_encryption;
mod push_sender;
mod retry_queue;
mod sender;
mod vapid;

pub use allowance::MessageQuota;
pub use channels::{PAGE_NTFY, PUSH, channels, targets};
pub use deliver::NotificationSender;
pub use error::{DeliveryError, NotifyError};
pub use message::{MessageSource, OwnerMessage, Priority};
pub use push_sender::{check_subscription, public_key};
pub use retry_queue::{QueuedNotification, RetryQueue};
