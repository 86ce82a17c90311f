//! What the owner does with containers. Each command is recorded in the audit; the caller runs it.

use std::fmt::Display;

use serde_json::json;

use super::owner_context::{OwnerCommand, OwnerContext};

/// A command for a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContainerCommand {
    /// Start it.
    Start,
    /// Stop it; all its processes end.
    Stop,
    /// Stop it and start it again.
    Restart,
    /// Pause all its processes.
    Freeze,
    /// Let its processes go on.
    Unfreeze,
}

impl ContainerCommand {
    /// The command of this word.
    pub fn named(word: &str) -> Option<Self> {
        let all = [
            Self::Start,
            Self::Stop,
            Self::Restart,
            Self::Freeze,
            Self::Unfreeze,
        ];
        all.into_iter().find(|command| command.word() == word)
    }

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Restart => "restart",
            Self::Freeze => "freeze",
            Self::Unfreeze => "unfreeze",
        }
    }

    fn command(self) -> &'static str {
        match self {
            Self::Start => "container start",
            Self::Stop => "container stop",
            Self::Restart => "container restart",
            Self::Freeze => "container freeze",
            Self::Unfreeze => "container unfreeze",
        }
    }
}

/// Runs a command for a container between its two audit rows. `run` gets the audit id, so that what it changes in the
/// state is attributed to the owner.
pub async fn command_container<E: Display>(
    owner: &OwnerContext<'_>,
    command: ContainerCommand,
    container: &str,
    run: impl AsyncFnOnce(&str) -> Result<(), E>,
) -> Result<(), String> {
    let recorded = OwnerCommand {
        command: command.command(),
        what: json!({ "container": container }),
        target: Some(container),
        change: None,
    };
    owner.run_audited_call(recorded, run).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewren_base::sys::Scratch;
    use gatewren_store::vault::{AuditReader, CallFilter, OWNER, Vault};

    #[tokio::test]
    async fn a_command_is_in_the_audit_as_the_owners_with_its_end() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        let vault = Vault::open(&path).unwrap();
        let owner = OwnerContext {
            vault: &vault,
            by: OWNER.to_owned(),
            from: "192.0.2.1".to_owned(),
        };
        let mut ids = Vec::new();
        let fail = async |call: &str| {
            ids.push(call.to_owned());
            Err("it does not start")
        };
        let failed = command_container(&owner, ContainerCommand::Start, "web", fail).await;
        assert_eq!(failed.unwrap_err(), "it does not start");
        let stop = async |call: &str| {
            ids.push(call.to_owned());
            Ok::<_, String>(())
        };
        let stopped = command_container(&owner, ContainerCommand::Stop, "web", stop).await;
        stopped.unwrap();
        vault.probe().await.unwrap();
        let wanted = CallFilter {
            target: Some("web".to_owned()),
            limit: 9,
            ..CallFilter::default()
        };
        let calls = AuditReader::open(&path).unwrap().calls(&wanted).unwrap();
        let rows: Vec<_> = calls
            .iter()
            .rev()
            .map(|call| {
                let outcome = call.ended.as_ref().and_then(|end| end.outcome.clone());
                (call.tool.clone().unwrap(), outcome.unwrap())
            })
            .collect();
        let row = |tool: &str, outcome: &str| (tool.to_owned(), outcome.to_owned());
        assert_eq!(
            rows,
            [
                row("container start", "failed"),
                row("container stop", "ok")
            ]
        );
        assert!(
            calls
                .iter()
                .all(|call| call.agent.as_deref() == Some(OWNER))
        );
        assert!(calls.iter().rev().map(|call| &call.call).eq(&ids));
    }
}
