//! Who may log in over SSH.

use std::time::Duration;

use crate::helper_client::{
    Fingerprint, Helper, Operation, PublicKey, SshAccount, SshKeyChange, SshKeyDeed,
};
use crate::sys::neutralise;

use super::{ask::ask_json, error::BackendError};

/// How long a disk may take for some small files.
const PATIENCE: Duration = Duration::from_secs(30);

/// The SSH keys of the accounts that the owner's file names, through the helper.
#[derive(Debug, Clone)]
pub struct Ssh {
    helper: Helper,
}

impl Ssh {
    /// Over this helper.
    pub fn new(helper: Helper) -> Self {
        Self { helper }
    }

    /// The keys that may log in, by account.
    ///
    /// # Errors
    /// When the owner's file does not let them be seen.
    pub async fn keys(&self, reference: &str) -> Result<Vec<SshAccount>, BackendError> {
        let deed = SshKeyDeed::List {};
        let asked = Operation::SshKeys { deed };
        let mut accounts: Vec<SshAccount> =
            ask_json(&self.helper, asked, PATIENCE, reference).await?;
        for key in accounts.iter_mut().flat_map(|account| &mut account.keys) {
            key.comment = neutralise(&key.comment).into_owned();
            key.kind = neutralise(&key.kind).into_owned();
        }
        Ok(accounts)
    }

    /// Lets a key log in as an account, the file's only one when absent; one that is there already stays as it is.
    ///
    /// # Errors
    /// When the owner's file does not name the account, and when others could have written its keys.
    pub async fn add(
        &self,
        account: Option<String>,
        key: PublicKey,
        reference: &str,
    ) -> Result<SshKeyChange, BackendError> {
        let deed = SshKeyDeed::Add { account, key };
        let asked = Operation::SshKeys { deed };
        ask_json(&self.helper, asked, PATIENCE, reference).await
    }

    /// No longer lets a key log in that was added so.
    ///
    /// # Errors
    /// The same, and when there is no such key, or it is the owner's own.
    pub async fn remove(
        &self,
        account: Option<String>,
        fingerprint: Fingerprint,
        reference: &str,
    ) -> Result<SshKeyChange, BackendError> {
        let deed = SshKeyDeed::Remove {
            account,
            fingerprint,
        };
        let asked = Operation::SshKeys { deed };
        ask_json(&self.helper, asked, PATIENCE, reference).await
    }
}
