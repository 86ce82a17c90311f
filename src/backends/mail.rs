//! Letters to the owner, sent by the helper through the box's own mail program.

use std::time::Duration;

use crate::helper_client::{Helper, Letter, Operation};

use super::{ask::ask, error::BackendError};

/// How long the mail program may take to take one; the helper ends it before.
const PATIENCE: Duration = Duration::from_secs(75);

/// The way of letters.
#[derive(Debug, Clone)]
pub struct Mail {
    helper: Helper,
}

impl Mail {
    /// Over this helper.
    pub fn new(helper: Helper) -> Self {
        Self { helper }
    }

    /// Sends one to whom the owner's file names.
    ///
    /// # Errors
    /// When the file names nobody, the box has no mail program, or that does not take it.
    pub async fn send(&self, letter: Letter) -> Result<(), BackendError> {
        let sent = ask(&self.helper, Operation::Mail(letter), PATIENCE, "mail").await;
        sent.map(drop)
    }
}
