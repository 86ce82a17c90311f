//! `gatewren audit list` and `show`: print calls.

use serde_json::{Map, Value, json};

use super::print;
use gatewren_base::sys::{read_hidden, rfc3339};
use gatewren_gate::auth::open_owner_key;
use gatewren_gate::owner_actions::{CallStatus, HumanTimestamp};
use gatewren_store::vault::{AuditCall, AuditReader, CallFilter, ExactArguments};

/// Filters for the list of calls.
#[derive(Debug, clap::Args)]
pub struct AuditListArgs {
    /// Only calls of this agent: its id or its name
    #[arg(long)]
    agent: Option<String>,
    /// Only calls of this tool
    #[arg(long)]
    tool: Option<String>,
    /// Only calls about this container, unit or pointer
    #[arg(long)]
    target: Option<String>,
    /// Only calls with this decision: allow, propose, ...
    #[arg(long)]
    decision: Option<String>,
    /// Only calls with this outcome: ok, failed, refused, cancelled, ..., or unknown
    #[arg(long)]
    outcome: Option<String>,
    /// Only calls from this time on: 2h or 7d ago, a date, or a time in RFC 3339
    #[arg(long, value_name = "MOMENT")]
    since: Option<HumanTimestamp>,
    /// Only calls before this time
    #[arg(long, value_name = "MOMENT")]
    until: Option<HumanTimestamp>,
    /// The maximum number of calls, the newest first
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
}

/// Returns the matching calls as a table, or as JSON with one object a line.
pub fn list(audit: &AuditReader, which: &AuditListArgs, json: bool) -> Result<String, String> {
    let wanted = CallFilter {
        agent: which.agent.clone(),
        tool: which.tool.clone(),
        target: which.target.clone(),
        decision: which.decision.clone(),
        outcome: which.outcome.clone(),
        since_ms: which.since.map(|moment| moment.0),
        until_ms: which.until.map(|moment| moment.0),
        limit: which.limit,
    };
    let calls = audit.calls(&wanted).map_err(|e| e.to_string())?;
    let run_after = audit.run_after().map_err(|e| e.to_string())?;
    let calls = calls
        .iter()
        .map(|call| (call, CallStatus::of(call, run_after)));
    Ok(if json {
        let lines: Vec<String> = calls
            .map(|(call, status)| as_json(call, &status).to_string())
            .collect();
        lines.join("\n")
    } else {
        print::table(calls)
    })
}

/// Returns everything that is known about one call; with `exact`, also its unmasked arguments.
pub fn show(audit: &AuditReader, name: &str, exact: bool, json: bool) -> Result<String, String> {
    let call = audit
        .call(name)
        .map_err(|e| e.to_string())?
        .ok_or_else(|| {
            format!(
                "call {name} not found, or already trimmed; `gatewren audit list` shows the calls"
            )
        })?;
    let run_after = audit.run_after().map_err(|e| e.to_string())?;
    let status = CallStatus::of(&call, run_after);
    let opened = if exact {
        Some(open(audit, &call)?)
    } else {
        None
    };
    Ok(if json {
        let mut fields = as_json(&call, &status);
        if let (Some(opened), Some(fields)) = (opened, fields.as_object_mut()) {
            fields.insert("exact_arguments".to_owned(), parse_json(&opened));
        }
        fields.to_string()
    } else {
        let whole = print::whole(&call, &status);
        opened.map_or(whole.clone(), |opened| print::with_exact(&whole, &opened))
    })
}

/// Returns the arguments of a call as the client sent them. Asks for the owner's password only if they are
/// sealed.
fn open(audit: &AuditReader, call: &AuditCall) -> Result<String, String> {
    match &call.exact {
        ExactArguments::Shown => return Ok(call.arguments.clone().unwrap_or_default()),
        ExactArguments::None(why) => {
            return Err(format!(
                "the exact arguments of this call are not kept: {why}"
            ));
        }
        ExactArguments::Sealed(_) => {}
    }
    let sealed = audit.sealed_arguments(call).map_err(|e| e.to_string())?;
    let sealed = sealed.ok_or("this call has no sealed arguments")?;
    let sealed = sealed.map_err(|e| e.to_string())?;
    let lost = |ms| {
        format!(
            "the key {} was lost when the password was reset at {}; only the password before the reset opens it",
            sealed.key.id,
            rfc3339(ms)
        )
    };
    let lost = sealed.key.lost_ms.map(lost);
    let question = if lost.is_some() {
        "The owner's password before the reset"
    } else {
        "The owner's password"
    };
    let password = read_hidden(question).map_err(|e| e.to_string())?;
    let key = open_owner_key(&sealed.key, &password).map_err(|error| match lost {
        Some(lost) => format!("{error}; {lost}"),
        None => error.to_string(),
    })?;
    sealed.open(&key).map_err(|e| e.to_string())
}

fn as_json(call: &AuditCall, status: &CallStatus) -> Value {
    let mut fields = json!(call);
    let arguments = call.arguments.as_deref().map(parse_json);
    if let Some(fields) = fields.as_object_mut() {
        fields.extend(Map::from_iter([
            ("at".to_owned(), json!(print::moment(call.at_ms))),
            ("status".to_owned(), json!(status.word())),
            ("arguments".to_owned(), json!(arguments)),
        ]));
    }
    fields
}

/// Parses JSON; returns the text itself if it is not JSON, as in a row that was altered.
fn parse_json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| json!(text))
}
