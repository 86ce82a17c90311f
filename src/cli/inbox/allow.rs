//! `gatewren inbox grant`, `grants` and `ungrant`: what an agent may do for a limited time without asking.

use serde_json::{Value, json};

use super::super::owner_action::owner_context;
use super::ask::ask_yes;
use super::context::InboxContext;
use gatewren_base::sys::{exact_line, rfc3339};
use gatewren_gate::owner_actions;
use gatewren_gate::owner_actions::{
    GrantRequest, HumanDuration, end_grant, granted_words, is_broad, known_tool,
};
use gatewren_store::vault::{Grant as Given, GrantBound, hex};

/// The grant to create.
#[derive(Debug, clap::Args)]
pub struct InboxGrantArgs {
    /// The agent: its id or its name
    agent: String,
    /// The tool, as `tools/list` names it
    tool: String,
    /// Only for calls about this container or unit; for everything that the agent may access if absent
    #[arg(long, visible_alias = "container", value_name = "NAME")]
    target: Option<String>,
    /// Only commands that begin with these words, such as "systemctl status"; for tools that run a command
    #[arg(long, value_name = "WORDS")]
    prefix: Option<String>,
    /// Allow every call of the tool, without --target or --prefix
    #[arg(long, conflicts_with_all = ["target", "prefix"])]
    broad: bool,
    /// How long, such as 30m or 2h; at most 30d
    #[arg(long = "for", value_name = "TIME")]
    span: HumanDuration,
}

/// Creates a grant.
pub async fn grant(
    inbox: &InboxContext,
    asked: &InboxGrantArgs,
    json: bool,
) -> Result<String, String> {
    let agent = inbox.agent(&asked.agent)?;
    known_tool(&inbox.vault, &asked.tool)?;
    let (tool, target) = (asked.tool.as_str(), asked.target.as_deref());
    let prefix = asked.prefix.clone();
    let bound = prefix.map_or(GrantBound::Any, GrantBound::Prefix);
    if is_broad(target, &bound) && !asked.broad {
        let words = format!(
            "This allows {} the following without asking, until the grant expires: {}.",
            exact_line(inbox.name(&agent)),
            granted_words(tool, target, &bound)
        );
        let otherwise = "limit it with --target or --prefix, or add --broad to allow every call";
        ask_yes(&words, "Allow every call?", otherwise)?;
    }
    let request = GrantRequest {
        agent: &agent,
        tool,
        target,
        bound,
        span: asked.span,
    };
    let given = owner_actions::grant(&owner_context(&inbox.vault), request).await?;
    Ok(if json {
        as_json(inbox, &given).to_string()
    } else {
        line(inbox, &given)
    })
}

/// Lists the active grants.
pub fn list(inbox: &InboxContext, json: bool) -> Result<String, String> {
    let grants = inbox.vault.grants().holding().map_err(|e| e.to_string())?;
    if json {
        let rows = grants.iter().map(|grant| as_json(inbox, grant));
        return Ok(Value::Array(rows.collect()).to_string());
    }
    if grants.is_empty() {
        return Ok("there are no active grants".to_owned());
    }
    let lines: Vec<String> = grants.iter().map(|grant| line(inbox, grant)).collect();
    Ok(lines.join("\n"))
}

/// Ends a grant.
pub async fn end(inbox: &InboxContext, id: &str, json: bool) -> Result<String, String> {
    if !end_grant(&owner_context(&inbox.vault), id).await? {
        return Err(format!(
            "there is no active grant {id}; `gatewren inbox grants` lists them"
        ));
    }
    Ok(if json {
        json!({ "ended": id }).to_string()
    } else {
        format!("{id} has ended")
    })
}

fn as_json(inbox: &InboxContext, grant: &Given) -> Value {
    json!({
        "id": grant.id,
        "agent": grant.agent,
        "agent_name": inbox.name(&grant.agent),
        "tool": grant.tool,
        "target": grant.target,
        "allows": granted_words(&grant.tool, grant.target.as_deref(), &grant.bound),
        "prefix": match &grant.bound {
            GrantBound::Prefix(prefix) => Some(prefix),
            _ => None,
        },
        "arguments_sha256": match &grant.bound {
            GrantBound::Arguments(sha256) => Some(hex(sha256)),
            _ => None,
        },
        "given_by": grant.given_by,
        "given": rfc3339(grant.given_ms),
        "until": rfc3339(grant.until_ms),
    })
}

fn line(inbox: &InboxContext, grant: &Given) -> String {
    exact_line(&format!(
        "{}  until {}: allows {} without asking: {} (by {})",
        grant.id,
        rfc3339(grant.until_ms),
        inbox.name(&grant.agent),
        granted_words(&grant.tool, grant.target.as_deref(), &grant.bound),
        grant.given_by
    ))
}
