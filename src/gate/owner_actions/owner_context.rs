//! Records the owner's actions in the audit: before each action, and its outcome.

use std::fmt::Display;

use serde_json::{Value, json};

use gatewren_store::vault::{OwnerAction as Entry, RecordedAction, Vault};

/// The owner at work: the vault that is changed, and who acts: a user on the host, or one signed in on the page.
pub struct OwnerContext<'a> {
    /// The vault.
    pub vault: &'a Vault,
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

impl<'a> OwnerCommand<'a> {
    /// A command without parameters.
    pub fn plain(command: &'static str, target: Option<&'a str>) -> Self {
        Self {
            command,
            what: json!({}),
            target,
            change: None,
        }
    }
}

impl OwnerContext<'_> {
    /// Performs an action between its two audit rows. An action that cannot be recorded is not performed.
    pub async fn run_audited<T, E: Display>(
        &self,
        command: OwnerCommand<'_>,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, String> {
        let work = async { work.await.map(|done| (done, "ok")) };
        self.run_audited_as(command, work).await
    }

    /// The same for an action that gets the id of its call.
    pub async fn run_audited_call<T, E: Display>(
        &self,
        command: OwnerCommand<'_>,
        work: impl AsyncFnOnce(&str) -> Result<T, E>,
    ) -> Result<T, String> {
        let begun = self.begin(command).await?;
        let done = work(begun.call()).await.map(|done| (done, "ok"));
        self.end(begun, done)
    }

    /// The same for an action that reports its own outcome.
    pub async fn run_audited_as<T, E: Display>(
        &self,
        command: OwnerCommand<'_>,
        work: impl Future<Output = Result<(T, &'static str), E>>,
    ) -> Result<T, String> {
        let begun = self.begin(command).await?;
        self.end(begun, work.await)
    }

    async fn begin(&self, command: OwnerCommand<'_>) -> Result<RecordedAction, String> {
        let entry = Entry {
            by: &self.by,
            from: &self.from,
            what: command.command,
            arguments: &command.what,
            target: command.target,
            change: command.change,
        };
        let begun = self.vault.audit().begin_action(entry).await;
        begun.map_err(|e| e.to_string())
    }

    fn end<T, E: Display>(
        &self,
        begun: RecordedAction,
        done: Result<(T, &'static str), E>,
    ) -> Result<T, String> {
        let status = done.as_ref().map_or("failed", |(_, word)| word);
        // The action is done already. If this fails, the audit still has the row of its beginning.
        let _ = self.vault.audit().record_outcome(begun, status);
        done.map(|(value, _)| value).map_err(|e| e.to_string())
    }
}
