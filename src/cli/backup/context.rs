//! Connects to the helper that has the backups, and to the vault whose audit records what the owner does.

use std::fmt::Display;
use std::fs::File;

use serde_json::Value;

use super::super::console::target::InstanceArgs;
use super::super::job::helper_of;
use super::super::owner_action::owner_context;
use gatewren_base::config::Reach;
use gatewren_base::sys::Requester;
use gatewren_gate::owner_actions::OwnerCommand;
use gatewren_host::backends::{Backups, BackupsView};
use gatewren_host::helper_client::HelperClient;
use gatewren_store::vault::Vault;

/// The requester's name in the helper's log.
const REFERENCE: &str = "gatewren backup";

/// The backups of a gatewren, and its vault.
pub struct BackupContext {
    vault: Vault,
    /// All backups, as the owner may access them.
    pub backups: BackupsView,
    /// Kept open, because the helper's address may lead through it.
    _directory: Option<File>,
}

impl BackupContext {
    /// Connects to the helper of that gatewren. The helper serves only its front's user, so root acts as that user
    /// from here on.
    pub fn open(place: &InstanceArgs) -> Result<Self, String> {
        let settings = place.settings()?;
        let file = place.file("vault.db")?;
        let vault = place.vault()?;
        let (socket, directory) = helper_of(place, &settings, &file)?;
        let helper = HelperClient::connect_to(socket).on_behalf_of(Requester::Owner);
        let backups = Backups::new(helper).view_for(&Reach::everything(), REFERENCE);
        Ok(Self {
            vault,
            backups,
            _directory: directory,
        })
    }

    /// Does what the owner wants, with a row in the audit before it and one after it.
    pub async fn audited<T, E: Display>(
        &self,
        command: &'static str,
        what: Value,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, String> {
        let command = OwnerCommand {
            what,
            ..OwnerCommand::plain(command, None)
        };
        let owner = owner_context(&self.vault);
        let work = async { work.await.map(|done| (done, "ok")) };
        owner.run_audited_as(command, work).await
    }
}
