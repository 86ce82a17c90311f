//! `gatewren agent show`: explains an agent's policy in words.

use serde_json::{Map, Value, json};

use super::{context::CliContext, list};
use gatewren_base::config::{Glob, Mode, Policy, Risk, Space, WHOLE_SERVER};
use gatewren_base::sys::rfc3339;
use gatewren_gate::auth::{AuthError, policy_of};
use gatewren_gate::owner_actions::{PolicyPreview, find_agent, sanitize, token_status};
use gatewren_gate::policy::class;
use gatewren_store::vault::Agent;

/// What happens to calls of a mode, in words for a person.
fn words(mode: Mode) -> &'static str {
    match mode {
        Mode::Allow => "run",
        Mode::Confirm => "ask the person at the client",
        Mode::ConfirmOwner => "ask the owner, and wait for the decision if the client can",
        Mode::Propose => "wait in the inbox for the owner",
        Mode::Deny => "are denied, and the tools are hidden",
    }
}

pub fn run(context: &CliContext, asked: &str) -> Result<String, String> {
    let agent = find_agent(&context.vault, asked)?;
    let policy = policy_of(&agent);
    let preview =
        policy.map(|policy| PolicyPreview::of(&agent, policy, &context.spaces, &context.tools));
    Ok(if context.json {
        as_json(context, &agent, preview.as_ref().ok())
    } else {
        in_words(context, &agent, preview.as_ref())
    })
}

fn as_json(context: &CliContext, agent: &Agent, preview: Option<&PolicyPreview>) -> String {
    let mut shown = list::row(context, agent);
    if let (Some(preview), Some(shown)) = (preview, shown.as_object_mut()) {
        let PolicyPreview {
            policy, tools, off, ..
        } = preview;
        let member = |risk: Risk| (risk.to_string(), json!(class(policy, risk)));
        let classes: Map<String, Value> = Risk::ALL.map(member).into_iter().collect();
        let tools = tools
            .iter()
            .map(|(mode, names)| (mode.to_string(), json!(names)));
        shown.insert("classes".to_owned(), Value::Object(classes));
        shown.insert("tools".to_owned(), Value::Object(tools.collect()));
        let off = off.iter().map(|(class, name)| (name.clone(), json!(class)));
        shown.insert("off_on_this_box".to_owned(), Value::Object(off.collect()));
    }
    shown.to_string()
}

fn in_words(
    context: &CliContext,
    agent: &Agent,
    preview: Result<&PolicyPreview, &AuthError>,
) -> String {
    let mut lines = vec![format!("{} ({})", sanitize(&agent.name), agent.id)];
    let mut say = |what: &str, words: &str| lines.push(format!("  {what:<10}{words}"));
    match token_status(agent, &context.spaces).refused {
        Some(why) => say("token", &format!("access denied: {why}")),
        None => say("token", &token(agent)),
    }
    say("space", &space(context, agent));
    if let Ok(PolicyPreview {
        policy,
        tools,
        off,
        hidden,
    }) = preview
    {
        say(
            "policy",
            &format!("{}{}", agent.preset, list_differences(policy)),
        );
        let overrides = &policy.overrides;
        say("from", &from(policy));
        let rate = overrides
            .calls_per_minute
            .map(|n| format!("{n} calls a minute"));
        let at_once = overrides
            .concurrent_calls
            .map(|n| format!("{n} concurrent calls"));
        let limits: Vec<String> = rate.into_iter().chain(at_once).collect();
        if !limits.is_empty() {
            say("at most", &limits.join(", "));
        }
        lines.push("Calls of each class".to_owned());
        for risk in Risk::ALL {
            lines.push(format!(
                "  {:<10}{}",
                risk.as_str(),
                words(class(policy, risk))
            ));
        }
        for (mode, names) in tools {
            lines.push(format!("Calls of these tools {}", words(*mode)));
            lines.push(format!("  {}", names.join(", ")));
        }
        if !off.is_empty() {
            lines.push("Tools that helper.toml disables for all agents, with the key".to_owned());
            let named = off.iter().map(|(class, name)| format!("{name} ({class})"));
            lines.push(format!("  {}", named.collect::<Vec<_>>().join(", ")));
        }
        match (tools.is_empty() && off.is_empty(), *hidden) {
            (true, 0) => lines
                .push("The tools are unknown until the server has been started once.".to_owned()),
            (_, hidden) => lines.push(format!("{hidden} tools are hidden from it")),
        }
    }
    lines.join("\n")
}

fn token(agent: &Agent) -> String {
    let until = agent.expires_ms.map_or_else(
        || "no expiry".to_owned(),
        |ms| format!("valid until {}", rfc3339(ms)),
    );
    let used = agent.last_used_ms.map_or_else(
        || "never used".to_owned(),
        |ms| format!("last used {}", rfc3339(ms)),
    );
    format!("{until}, {used}")
}

fn space(context: &CliContext, agent: &Agent) -> String {
    let name = agent.space.as_deref().unwrap_or("-");
    match context.spaces.get(name) {
        _ if name == WHOLE_SERVER => "the host and all containers".to_owned(),
        Some(Space { containers, host }) => {
            let host = if *host {
                "and the host"
            } else {
                "and not the host"
            };
            format!("{name}: containers {}, {host}", globs(containers))
        }
        None => format!("{}, which is not in the settings", sanitize(name)),
    }
}

fn list_differences(policy: &Policy) -> String {
    let overrides = &policy.overrides;
    let mut parts = Vec::new();
    if let Some(toolsets) = &overrides.toolsets {
        parts.push(format!("only the toolsets {}", toolsets.join(", ")));
    }
    if let Some(containers) = &overrides.containers {
        parts.push(format!("only the containers {}", globs(containers)));
    }
    let classes = overrides
        .modes
        .iter()
        .map(|(risk, mode)| format!("{risk}={mode}"));
    parts.extend(classes);
    let tools = overrides
        .tools
        .iter()
        .map(|(tool, mode)| format!("{tool}={mode}"));
    parts.extend(tools);
    if parts.is_empty() {
        return String::new();
    }
    sanitize(&format!(", but {}", parts.join(", ")))
}

fn from(policy: &Policy) -> String {
    let Some(networks) = &policy.overrides.networks else {
        return "any address".to_owned();
    };
    let networks: Vec<String> = networks.iter().map(ToString::to_string).collect();
    networks.join(", ")
}

fn globs(globs: &[Glob]) -> String {
    if globs.is_empty() {
        return "none".to_owned();
    }
    globs
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}
