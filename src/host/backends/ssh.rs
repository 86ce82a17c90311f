//! The SSH keys that may log in.

use std::time::Duration;

use crate::helper_client::{
    Fingerprint, HelperClient, Operation, PublicKey, SshAccount, SshKeyAction, SshKeyChange,
};
use gatewren_base::sys::neutralise;

use super::error::BackendError;
use super::request::ask_json;

/// The timeout for reading or writing some small files.
const PATIENCE: Duration = Duration::from_secs(30);

/// The SSH keys of the accounts in the owner's file, through the helper.
#[derive(Debug, Clone)]
pub struct Ssh {
    helper: HelperClient,
}

impl Ssh {
    /// Returns access through this helper.
    pub fn new(helper: HelperClient) -> Self {
        Self { helper }
    }

    /// Returns the authorized keys by account.
    ///
    /// # Errors
    /// When the owner's file does not allow it.
    pub async fn keys(&self, reference: &str) -> Result<Vec<SshAccount>, BackendError> {
        let action = SshKeyAction::List {};
        let operation = Operation::SshKeys { action };
        let mut accounts: Vec<SshAccount> =
            ask_json(&self.helper, operation, PATIENCE, reference).await?;
        for key in accounts.iter_mut().flat_map(|account| &mut account.keys) {
            key.comment = neutralise(&key.comment).into_owned();
            key.kind = neutralise(&key.kind).into_owned();
        }
        Ok(accounts)
    }

    /// Authorizes a key for an account, by default the file's only one; an existing key is
    /// unchanged.
    ///
    /// # Errors
    /// When the owner's file does not name the account, and when other users could have written its
    /// keys.
    pub async fn add(
        &self,
        account: Option<String>,
        key: PublicKey,
        reference: &str,
    ) -> Result<SshKeyChange, BackendError> {
        let action = SshKeyAction::Add { account, key };
        let operation = Operation::SshKeys { action };
        ask_json(&self.helper, operation, PATIENCE, reference).await
    }

    /// Removes a key that was added by `add`.
    ///
    /// # Errors
    /// As for adding, when the key does not exist, and when it is the owner's own key.
    pub async fn remove(
        &self,
        account: Option<String>,
        fingerprint: Fingerprint,
        reference: &str,
    ) -> Result<SshKeyChange, BackendError> {
        let action = SshKeyAction::Remove {
            account,
            fingerprint,
        };
        let operation = Operation::SshKeys { action };
        ask_json(&self.helper, operation, PATIENCE, reference).await
    }
}
