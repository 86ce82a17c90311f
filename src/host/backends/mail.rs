//! Mail to the owner, which the helper sends through the host's mail program.

use std::time::Duration;

use crate::helper_client::{HelperClient, MailMessage, Operation};

use super::error::BackendError;
use super::request::ask;

/// The timeout for the mail program to accept a mail; the helper stops it earlier.
const PATIENCE: Duration = Duration::from_secs(75);

/// Sends mail through the helper.
#[derive(Debug, Clone)]
pub struct Mail {
    helper: HelperClient,
}

impl Mail {
    /// Returns a sender through this helper.
    pub fn new(helper: HelperClient) -> Self {
        Self { helper }
    }

    /// Sends a mail to the address in the owner's file.
    ///
    /// # Errors
    /// When the file has no address, the host has no mail program, or the program rejects the mail.
    pub async fn send(&self, message: MailMessage) -> Result<(), BackendError> {
        let sent = ask(&self.helper, Operation::Mail(message), PATIENCE, "mail").await;
        sent.map(drop)
    }
}
