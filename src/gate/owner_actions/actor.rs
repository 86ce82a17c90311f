//! Records the owner's actions in the audit: before each action, and its outcome.

use std::fmt::Display;

use serde_json::Value;

use gatewren_store::vault::{OwnerAction as Entry, Vault};

/// Who acts for the owner: a user on the host, or one signed in on the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerActor {
    /// The actor, such as `local:root` or `owner`.
    pub by: String,
    /// The origin: an address, or `local`.
    pub from: String,
}

/// An action about to be performed.
pub struct OwnerCommand<'a> {
    /// The command, such as `agent add`; the page uses the same names.
    pub command: &'static str,
    /// Its parameters; never a token.
    pub what: Value,
    /// The target, such as an agent's id, or the name of a new one.
    pub target: Option<&'a str>,
    /// The change in the inbox that it decides on.
    pub change: Option<&'a str>,
}

impl OwnerActor {
    /// Performs an action between its two audit rows. An action that cannot be recorded is not performed.
    pub async fn recorded<T, E: Display>(
        &self,
        vault: &Vault,
        deed: OwnerCommand<'_>,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, String> {
        let work = async { work.await.map(|done| (done, "ok")) };
        self.recorded_as(vault, deed, work).await
    }

    /// The same for an action that reports its own outcome.
    pub async fn recorded_as<T, E: Display>(
        &self,
        vault: &Vault,
        deed: OwnerCommand<'_>,
        work: impl Future<Output = Result<(T, &'static str), E>>,
    ) -> Result<T, String> {
        let entry = Entry {
            by: &self.by,
            from: &self.from,
            what: deed.command,
            arguments: &deed.what,
            target: deed.target,
            change: deed.change,
        };
        let undertaking = vault.audit().undertake(entry).await;
        let undertaking = undertaking.map_err(|e| e.to_string())?;
        let done = work.await;
        let status = done.as_ref().map_or("failed", |(_, word)| word);
        // The action is done already. If this fails, the audit still has the row of its beginning.
        let _ = vault.audit().done(undertaking, status);
        done.map(|(value, _)| value).map_err(|e| e.to_string())
    }
}
