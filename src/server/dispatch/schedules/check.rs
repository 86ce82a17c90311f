//! Checks a call before it is scheduled: its tool, its arguments, its target, and the agent's policy.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::dispatch::call::Call;
use crate::dispatch::changes::proposal_target::check_target;
use crate::dispatch::container_names::{
    NameRequest, NamedContainer, resolve_container_now, resolve_inside,
};
use crate::dispatch::engine::Engine;
use crate::dispatch::host_rights::judge_call;
use crate::dispatch::reference;
use gatewren_base::telemetry::redact;
use gatewren_gate::auth::Principal;
use gatewren_gate::policy::{Verdict, sees};
use gatewren_wire::registry::{CheckedCall, Cx, Risk, ScheduledCall, TaskSupport, Tool, ToolError};

/// The maximum size of a scheduled call's arguments in bytes; larger ones are refused.
const MAX_ARGUMENTS_BYTES: usize = 4 << 10;

/// Toolsets of which no call can be scheduled: a schedule must not create schedules, or decide on proposals.
const NEVER: [&str; 4] = ["access", "changes", "schedules", "suggest"];

/// Adds the check of calls that it schedules to the context of a call of `tool`, if it is about schedules. `approval` is the change of the inbox in which the
/// owner approved the call.
pub(in crate::dispatch) fn with_check(
    cx: Cx,
    engine: &Arc<Engine>,
    who: &Principal,
    tool: &Tool,
    approval: Option<String>,
) -> Cx {
    if !tool.checks_calls() {
        return cx;
    }
    let (engine, who) = (engine.clone(), who.clone());
    cx.with_call_check(Box::new(move |asked| {
        let (engine, who, approval) = (engine.clone(), who.clone(), approval.clone());
        Box::pin(async move {
            let tool = check_scheduled(&engine, &who, &asked).await?;
            Ok(CheckedCall {
                target: tool.target(&asked.arguments).map(str::to_owned),
                preset: who.preset().as_str().to_owned(),
                overrides: who.policy().overrides.to_text(),
                approval,
            })
        })
    }))
}

/// Checks the call in the arguments of `schedule_create`, before the owner is asked.
///
/// # Errors
/// An error for the model: the call cannot be scheduled, or the agent has a schedule with this name.
pub(in crate::dispatch) async fn check_schedule(
    engine: &Engine,
    who: &Principal,
    tool: &Tool,
    arguments: &Map<String, Value>,
) -> Result<(), ToolError> {
    tool.check_arguments(arguments.clone())?;
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let call = arguments.get("arguments").and_then(Value::as_object);
    let asked = ScheduledCall {
        tool: text("tool").unwrap_or_default().to_owned(),
        arguments: call.cloned().unwrap_or_default(),
    };
    check_scheduled(engine, who, &asked).await?;
    let named = text("name").unwrap_or_default();
    let vault = engine.vault.as_ref();
    let same = vault.and_then(|vault| {
        let found = vault.schedules().find_of(who.agent_id().as_str(), named);
        found.ok().flatten()
    });
    match same {
        Some(_) => Err(name_taken(named)),
        None => Ok(()),
    }
}

/// The error for a name that the agent has already given.
pub(in crate::dispatch) fn name_taken(name: &str) -> ToolError {
    ToolError::new(format!("you already have a schedule named '{name}'"))
        .hint("Choose another name, or delete that schedule with schedule_delete.")
}

/// Returns the tool of a call that may be scheduled.
///
/// # Errors
/// An error for the model that states why it may not.
pub(in crate::dispatch) async fn check_scheduled(
    engine: &Engine,
    who: &Principal,
    asked: &ScheduledCall,
) -> Result<Arc<Tool>, ToolError> {
    let ScheduledCall { tool, arguments } = asked;
    let tool = find_tool(engine, who, tool)?;
    check_size_and_secrets(arguments)?;
    let mut resolved = arguments.clone();
    let name_request = NameRequest {
        who,
        reference: &reference::next(),
    };
    resolve_container_now(engine, name_request, &tool, &mut resolved).await?;
    let named = NamedContainer {
        arguments: &mut resolved,
        inside: None,
    };
    resolve_inside(engine, who, &tool, named)?;
    if resolved != *arguments {
        // Otherwise the same name could mean another container when the call runs.
        let whole = Value::Object(resolved);
        return Err(ToolError::new(
            "the arguments of a scheduled call must name the container in full",
        )
        .hint(format!("Use these arguments: {whole}")));
    }
    tool.check_arguments(resolved).map_err(|error| ToolError {
        message: format!("the scheduled call of {}: {}", tool.name(), error.message),
        ..error
    })?;
    if let Verdict::Deny = judge_call(engine, who, &tool, arguments) {
        return Err(unknown(tool.name()));
    }
    // Boxed: the check of a target is also what calls this one.
    Box::pin(check_target(
        engine,
        &Call::unattended(who),
        &tool,
        arguments,
    ))
    .await?;
    Ok(tool)
}

fn find_tool(engine: &Engine, who: &Principal, name: &str) -> Result<Arc<Tool>, ToolError> {
    let found = engine.catalog.tool(name);
    let found =
        found.filter(|tool| tool.name() == name && engine.catalog.has(tool) && sees(who, tool));
    let tool = found.ok_or_else(|| unknown(name))?;
    match refusal(tool) {
        Some(why) => Err(ToolError::new(format!("{name} cannot be scheduled: {why}"))),
        None => Ok(tool.clone()),
    }
}

fn unknown(name: &str) -> ToolError {
    let shown: String = name.chars().take(64).collect();
    ToolError::new(format!("unknown tool in the schedule: {shown}"))
        .hint("Name a tool that you can call yourself, by its name in tools/list.")
}

/// Returns why no call of a tool can be scheduled, if so. Checked again at each run.
pub(in crate::dispatch) fn refusal(tool: &Tool) -> Option<&'static str> {
    let asks = tool.remembers() || tool.task_support() == TaskSupport::Required;
    if NEVER.contains(&tool.toolset()) || tool.checks_calls() {
        return Some("it is about schedules, proposals or sessions themselves");
    }
    match tool.risk() {
        Risk::Execute => Some("it runs commands; the owner can use a systemd timer for that"),
        Risk::Reveal => Some("it may show secrets"),
        Risk::Persist => Some("it creates lasting access, or writes what root may run"),
        Risk::Read | Risk::Scan | Risk::Write | Risk::Disrupt if asks => {
            Some("it asks the person at the client")
        }
        Risk::Read | Risk::Scan | Risk::Write | Risk::Disrupt => None,
    }
}

fn check_size_and_secrets(arguments: &Map<String, Value>) -> Result<(), ToolError> {
    let whole = Value::Object(arguments.clone());
    let bytes = whole.to_string().len();
    if bytes > MAX_ARGUMENTS_BYTES {
        return Err(ToolError::new(format!(
            "the arguments of the scheduled call have {bytes} bytes; at most {MAX_ARGUMENTS_BYTES} are possible"
        )));
    }
    if redact(&whole) != whole {
        return Err(ToolError::new(
            "the arguments of the scheduled call contain a secret, and schedules do not store secrets",
        ));
    }
    Ok(())
}
