//! `gatewren audit list` and `show`: the calls themselves.

use serde_json::{Map, Value, json};

use super::print;
use crate::deeds::{CallStatus, Moment};
use crate::vault::{AuditCall, AuditReader, AuditWanted};

/// Which calls are listed.
#[derive(Debug, clap::Args)]
pub struct Which {
    /// Only those of this agent: its id or its name
    #[arg(long)]
    agent: Option<String>,
    /// Only those of this tool
    #[arg(long)]
    tool: Option<String>,
    /// Only those about this container, unit or pointer
    #[arg(long)]
    target: Option<String>,
    /// Only those so decided: allow, propose, ...
    #[arg(long)]
    decision: Option<String>,
    /// Only those that ended so: ok, failed, refused, cancelled, ..., or unknown
    #[arg(long)]
    outcome: Option<String>,
    /// Only those from this moment on: 2h or 7d ago, a date, or a time as RFC 3339 has it
    #[arg(long, value_name = "MOMENT")]
    since: Option<Moment>,
    /// Only those before this moment
    #[arg(long, value_name = "MOMENT")]
    until: Option<Moment>,
    /// At most so many, the newest
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
}

/// The calls that are wanted, as a table or as JSON, an object a line.
pub fn list(audit: &AuditReader, which: &Which, json: bool) -> Result<String, String> {
    let wanted = AuditWanted {
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
    let told = calls
        .iter()
        .map(|call| (call, CallStatus::of(call, run_after)));
    Ok(if json {
        let lines: Vec<String> = told
            .map(|(call, status)| as_json(call, &status).to_string())
            .collect();
        lines.join("\n")
    } else {
        print::table(told)
    })
}

/// All that is known of one call.
pub fn show(audit: &AuditReader, name: &str, json: bool) -> Result<String, String> {
    let call = audit
        .call(name)
        .map_err(|e| e.to_string())?
        .ok_or_else(|| {
            format!("there is no call {name}, or no longer; `gatewren audit list` shows calls")
        })?;
    let run_after = audit.run_after().map_err(|e| e.to_string())?;
    let status = CallStatus::of(&call, run_after);
    Ok(if json {
        as_json(&call, &status).to_string()
    } else {
        print::whole(&call, &status)
    })
}

fn as_json(call: &AuditCall, status: &CallStatus) -> Value {
    let mut told = json!(call);
    let arguments = call.arguments.as_deref();
    // As it stands there if somebody has made it something else than JSON.
    let arguments =
        arguments.map(|text| serde_json::from_str(text).unwrap_or_else(|_| json!(text)));
    if let Some(fields) = told.as_object_mut() {
        fields.extend(Map::from_iter([
            ("at".to_owned(), json!(print::moment(call.at_ms))),
            ("status".to_owned(), json!(status.word())),
            ("arguments".to_owned(), json!(arguments)),
        ]));
    }
    told
}
