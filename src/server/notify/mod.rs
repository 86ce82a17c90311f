//! Sends messages to the owner over the channels of the settings: ntfy, webhook, mail.
#![forbid(unsafe_code)]

mod allowance;
mod deliver;
mod error;
mod message;
mod push_encryption;
mod retry_queue;
mod sender;
mod vapid;

pub use allowance::MessageQuota;
pub use deliver::NotificationSender;
pub use error::NotifyError;
pub use message::{MessageSource, OwnerMessage, Priority};
pub use push_encryption::{AUTH_BYTES, DeviceKeys, MAX_PLAINTEXT, PUBLIC_KEY_BYTES, encrypt};
pub use retry_queue::{QueuedNotification, RetryQueue};
pub use sender::deliver;
pub use vapid::VapidKey;
