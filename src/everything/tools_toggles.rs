//! Tools that switch on something that continues after the call: updates of resources, log messages.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::broadcast::Sender;

use super::{
    pulse::{EVERY, LASTS, Pulse, Switched},
    resources::Fixtures,
};
use crate::protocol::Level;
use crate::registry::{Answer, Caller, Cx, Result, Risk, SessionLog, ToolError, Toolset};

const LOGGER: &str = "toggle-simulated-logging";

/// The state of both switches.
pub struct Toggles {
    updates: Arc<Pulse>,
    logs: Arc<Pulse>,
}

/// The toolset, as a table.
pub fn tools(fixtures: Arc<Fixtures>, logs: Sender<SessionLog>) -> Toolset<Toggles> {
    let toggles = Toggles {
        updates: Pulse::new(move |_, _| fixtures.touch_all()),
        logs: Pulse::new(move |session, count| {
            // An error means that there are no subscribers.
            let _ = logs.send(log(session, count));
        }),
    };
    Toolset::over(Arc::new(toggles))
        .answering("toggle-subscriber-updates", Risk::Write, updates)
        .titled("Subscriber updates, on or off")
        .answering("toggle-simulated-logging", Risk::Write, logging)
        .titled("Simulated logging, on or off")
}

fn log(session: &str, count: usize) -> SessionLog {
    let level = Level::ALL.get(count % Level::ALL.len()).copied();
    SessionLog {
        session: session.into(),
        level: level.unwrap_or(Level::Info),
        logger: LOGGER,
        data: json!("A message for testing"),
    }
}

/// Report to all subscribers every five seconds that their resource has changed; called again, stop. The
/// resources stay unchanged. It stops by itself after ten minutes.
#[derive(Deserialize, JsonSchema)]
struct Updates {}

async fn updates(toggles: Arc<Toggles>, Updates {}: Updates, cx: Cx) -> Result<Answer> {
    let Caller { session, agent, .. } = cx.caller();
    let client = session.as_ref().unwrap_or(agent);
    switched(toggles.updates.switch(client), "simulated resource updates")
}

/// Send the session a log message every five seconds, each time of another severity; called again, stop. A client
/// receives those at or above the level that it has set. It stops by itself after ten minutes. Without a session,
/// as in 2026-07-28, it logs only one message of each severity, during the call.
#[derive(Deserialize, JsonSchema)]
struct Logging {}

async fn logging(toggles: Arc<Toggles>, Logging {}: Logging, cx: Cx) -> Result<Answer> {
    if let Some(session) = &cx.caller().session {
        return switched(toggles.logs.switch(session), "simulated logging");
    }
    for level in Level::ALL {
        cx.log(level, LOGGER, &json!("A message for testing")).await;
    }
    Ok(Answer::text(
        "Logged one message of each severity: without a session nothing is logged after the call.",
    ))
}

fn switched(to: Switched, what: &str) -> Result<Answer> {
    match to {
        Switched::On => Ok(Answer::text(format!(
            "Started {what}, every {} seconds for at most {} minutes.",
            EVERY.as_secs(),
            LASTS.as_secs() / 60
        ))),
        Switched::Off => Ok(Answer::text(format!("Stopped {what}."))),
        Switched::Refused => {
            Err(ToolError::new(format!("too many clients have {what} on; try again later")).into())
        }
    }
}
