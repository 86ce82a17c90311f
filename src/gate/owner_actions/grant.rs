//! Grants: what an agent may do for some time without asking for each call.

use serde_json::json;

use super::duration::HumanDuration;
use super::owner_context::{OwnerCommand, OwnerContext};
use crate::auth::CommandPrefix;
use gatewren_base::config::nearest;
use gatewren_base::sys::{exact_line, now_ms, rfc3339};
use gatewren_store::vault::{Grant, GrantBound, NewGrant, Vault, hex};

/// Rejects a tool that the server did not offer when it last started: a typo would look like a valid grant.
pub fn known_tool(vault: &Vault, tool: &str) -> Result<(), String> {
    let offered = vault.offer().tools().map_err(|e| e.to_string())?;
    let names = offered.iter().map(|offered| offered.name.as_str());
    let names: Vec<&str> = names.collect();
    if names.is_empty() || names.contains(&tool) {
        return Ok(());
    }
    let near = nearest(tool, names.iter().copied());
    let near = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
    Err(format!("unknown tool {tool:?} on this server{near}"))
}

/// Tools with an argument `command` for a shell, which runs as root unless the call names a user.
const SHELLS: [&str; 3] = ["container_shell", "job_start", "system_shell"];

/// A grant that the owner wants to give.
#[derive(Debug, Clone)]
pub struct GrantRequest<'a> {
    /// The agent's id.
    pub agent: &'a str,
    /// The tool.
    pub tool: &'a str,
    /// The target that its calls may have; any that the agent reaches if absent.
    pub target: Option<&'a str>,
    /// Which of these calls are allowed.
    pub bound: GrantBound,
    /// For how long.
    pub span: HumanDuration,
}

/// Returns whether a grant would allow every call of a tool on any target: the owner has to confirm it twice.
pub fn is_broad(target: Option<&str>, bound: &GrantBound) -> bool {
    target.is_none() && *bound == GrantBound::Any
}

/// Returns whether a tool has a shell command, which a grant can limit to a prefix.
pub fn takes_command(tool: &str) -> bool {
    SHELLS.contains(&tool)
}

/// Describes what a grant allows: `any command as root on this server`.
pub fn granted_words(tool: &str, target: Option<&str>, bound: &GrantBound) -> String {
    let on = match (tool, target) {
        (_, Some(target)) => format!("on {target}"),
        ("container_shell", None) => "in every container that the agent reaches".to_owned(),
        ("job_start", None) => {
            "on this server and in every container that the agent reaches".to_owned()
        }
        _ => "on this server".to_owned(),
    };
    let words = match bound {
        GrantBound::Arguments(sha256) => {
            let digits: String = hex(sha256).chars().take(12).collect();
            format!("calls of {tool} with exactly these arguments (SHA-256 {digits}...)")
        }
        GrantBound::Prefix(prefix) if target.is_none() => {
            format!("commands of {tool} that begin with \"{prefix}\" and name no container")
        }
        GrantBound::Prefix(prefix) => {
            format!("commands of {tool} that begin with \"{prefix}\", {on}")
        }
        GrantBound::Any if takes_command(tool) => format!("any command as root {on} ({tool})"),
        GrantBound::Any if target.is_none() => {
            format!("any call of {tool} on this server, whatever its arguments")
        }
        GrantBound::Any => format!("any call of {tool} {on}"),
    };
    exact_line(&words)
}

/// Gives a grant, which is in force when this returns.
///
/// # Errors
/// A message for the owner: the prefix is invalid, the tool has no command, or the grant cannot be recorded or
/// stored.
pub async fn grant(
    owner: &OwnerContext<'_>,
    mut request: GrantRequest<'_>,
) -> Result<Grant, String> {
    if let GrantBound::Prefix(words) = &request.bound {
        if !takes_command(request.tool) {
            return Err(format!(
                "{} has no command, so no command prefix can be allowed; prefixes are for {}",
                request.tool,
                SHELLS.join(", ")
            ));
        }
        request.bound = GrantBound::Prefix(words.parse::<CommandPrefix>()?.as_str().to_owned());
    }
    let until_ms = now_ms().saturating_add(request.span.0);
    let GrantRequest {
        agent,
        tool,
        target,
        bound,
        ..
    } = request;
    let command = OwnerCommand {
        command: "inbox grant",
        what: json!({
            "agent": agent, "tool": tool, "target": target, "until": rfc3339(until_ms),
            "allows": granted_words(tool, target, &bound),
        }),
        target,
        change: None,
    };
    let new = NewGrant {
        agent: agent.to_owned(),
        tool: tool.to_owned(),
        target: target.map(str::to_owned),
        bound,
        given_by: owner.by.clone(),
        until_ms,
    };
    owner
        .run_audited(command, owner.vault.grants().add(new))
        .await
}

/// Revokes a grant; false if none with this id is in force.
pub async fn end_grant(owner: &OwnerContext<'_>, id: &str) -> Result<bool, String> {
    let command = OwnerCommand {
        command: "inbox ungrant",
        what: json!({ "grant": id }),
        target: None,
        change: None,
    };
    let end = async {
        let found = owner.vault.grants().end(id).await;
        found.map(|found| (found, if found { "ok" } else { "refused" }))
    };
    owner.run_audited_as(command, end).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_grant_state_how_far_it_goes() {
        let any = GrantBound::Any;
        let prefix = GrantBound::Prefix("systemctl status".to_owned());
        for (tool, target, bound, words) in [
            (
                "system_shell",
                None,
                &any,
                "any command as root on this server",
            ),
            (
                "container_shell",
                Some("web"),
                &any,
                "any command as root on web",
            ),
            (
                "job_start",
                None,
                &any,
                "on this server and in every container",
            ),
            (
                "file_write",
                None,
                &any,
                "any call of file_write on this server, whatever its arguments",
            ),
            (
                "container_restart",
                Some("web"),
                &any,
                "any call of container_restart on web",
            ),
            (
                "system_shell",
                None,
                &prefix,
                "begin with \"systemctl status\" and name no container",
            ),
            (
                "system_shell",
                None,
                &GrantBound::Arguments([1; 32]),
                "calls of system_shell with exactly these arguments",
            ),
        ] {
            let text = granted_words(tool, target, bound);
            assert!(text.contains(words), "{text}");
        }
        assert!(is_broad(None, &any) && !is_broad(Some("web"), &any) && !is_broad(None, &prefix));
    }
}
