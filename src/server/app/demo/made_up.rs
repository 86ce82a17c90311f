//! The invented server of a demo, as `box.json` describes it, with its times as milliseconds since 1970.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Number, Value};

/// The description. A time is an object such as `{"hours_ago": 1.5}`.
const BOX: &str = include_str!("box.json");

const HOUR_MS: f64 = 3_600_000.0;

/// An invented server with its containers, its agents and its last week.
#[derive(Debug, Deserialize)]
pub struct MadeUpServer {
    /// The state's `/public/serverInfo`.
    pub server: Value,
    /// The usage of the host.
    pub usage: UsageShape,
    /// The usage of its fullest disk in percent.
    pub disk_percent: f64,
    /// The containers by reference.
    pub containers: BTreeMap<String, MadeUpContainer>,
    /// The agents.
    pub agents: Vec<MadeUpAgent>,
    /// The calls that went into the inbox.
    pub requests: Vec<MadeUpRequest>,
    /// The notifications.
    pub alerts: Vec<MadeUpAlert>,
    /// The watches.
    pub watches: Vec<MadeUpWatch>,
}

/// A container.
#[derive(Debug, Deserialize)]
pub struct MadeUpContainer {
    /// Its entry in the state.
    pub facts: Value,
    /// Its usage while it runs.
    pub usage: UsageShape,
    /// Its last log lines.
    pub log: Vec<String>,
    /// Its snapshots, oldest first.
    #[serde(default)]
    pub snapshots: Vec<MadeUpCopy>,
    /// Its backups, newest first.
    #[serde(default)]
    pub backups: Vec<MadeUpBackup>,
    /// The changes of its status, oldest first.
    #[serde(default)]
    pub events: Vec<MadeUpEvent>,
}

/// The usual usage of the host or of a container.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct UsageShape {
    /// CPU in percent.
    pub cpu: f64,
    /// Memory in MB.
    pub memory_mb: f64,
    /// Its limit in MB.
    pub limit_mb: f64,
    /// Network traffic in kB per second.
    pub network_kb: f64,
    /// When it was stopped, if it does not run.
    #[serde(default)]
    pub stopped: Option<u64>,
}

/// A snapshot.
#[derive(Debug, Deserialize)]
pub struct MadeUpCopy {
    /// Its name.
    pub name: String,
    /// When it was made.
    pub at: u64,
    /// Its purpose.
    pub comment: String,
}

/// A backup.
#[derive(Debug, Deserialize)]
pub struct MadeUpBackup {
    /// When it was made.
    pub at: u64,
    /// Its size in MB.
    pub size_mb: u64,
}

/// A change of a container's status, and the call that caused it, if one did.
#[derive(Debug, Deserialize)]
pub struct MadeUpEvent {
    /// When.
    pub at: u64,
    /// The new status.
    pub status: String,
    /// The agent and its call.
    #[serde(default)]
    pub cause: Option<MadeUpCause>,
}

/// The call behind a change.
#[derive(Debug, Deserialize)]
pub struct MadeUpCause {
    /// The agent's name.
    pub agent: String,
    /// The tool.
    pub tool: String,
    /// The tool's class.
    pub risk: String,
    /// The agent's reason.
    pub reason: String,
}

/// An agent.
#[derive(Debug, Deserialize)]
pub struct MadeUpAgent {
    /// Its name.
    pub name: String,
    /// The preset of its policy.
    pub policy: String,
    /// When it was added.
    pub created: u64,
    /// Its last call.
    pub last: u64,
    /// Its calls in its busiest hours.
    pub calls_an_hour: u32,
    /// Whether it calls at all hours, as programs do, or rests at night.
    #[serde(default)]
    pub never_rests: bool,
    /// What it calls.
    pub calls: Vec<MadeUpCall>,
}

/// A call.
#[derive(Debug, Deserialize)]
pub struct MadeUpCall {
    /// The tool.
    pub tool: String,
    /// The tool's class.
    pub risk: String,
    /// The arguments.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// How many of the agent's calls are of this kind, compared with its others.
    #[serde(default = "usual_share")]
    pub share: usize,
    /// Why it was refused, if it was.
    #[serde(default)]
    pub refused: Option<String>,
    /// Why it failed, if it did.
    #[serde(default)]
    pub failed: Option<String>,
}

fn usual_share() -> usize {
    4
}

/// A call that waits in the inbox, or that the owner has rejected.
#[derive(Debug, Deserialize)]
pub struct MadeUpRequest {
    /// The agent's name.
    pub agent: String,
    /// The tool.
    pub tool: String,
    /// The tool's class.
    pub risk: String,
    /// The target.
    #[serde(default)]
    pub target: Option<String>,
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// The agent's reason.
    pub reason: String,
    /// When it was proposed.
    pub at: u64,
    /// When it expires.
    pub expires: u64,
    /// The owner's note, if the owner has rejected it.
    #[serde(default)]
    pub rejected: Option<String>,
}

/// A notification.
#[derive(Debug, Deserialize)]
pub struct MadeUpAlert {
    /// When.
    pub at: u64,
    /// `info`, `warning` or `error`.
    pub level: String,
    /// The container that it is about.
    #[serde(default)]
    pub container: Option<String>,
    /// The title.
    pub title: String,
    /// The text.
    pub message: String,
    /// Whether the owner has seen it.
    #[serde(default)]
    pub seen: bool,
}

/// A watch.
#[derive(Debug, Deserialize)]
pub struct MadeUpWatch {
    /// The agent's name.
    pub agent: String,
    /// The watch's name.
    pub name: String,
    /// The condition.
    pub spec: Value,
    /// What the last check found.
    pub state: Value,
}

impl MadeUpServer {
    /// Reads the description, with times before `now_ms`.
    ///
    /// # Errors
    /// When the description is invalid, which the tests exclude.
    pub fn read(now_ms: u64) -> Result<Self, serde_json::Error> {
        let mut all: Value = serde_json::from_str(BOX)?;
        set_times(&mut all, now_ms);
        serde_json::from_value(all)
    }
}

/// Replaces each `{"hours_ago": n}` by the time.
fn set_times(value: &mut Value, now_ms: u64) {
    match value {
        Value::Object(members) => {
            if let Some(hours) = members.get("hours_ago").and_then(Value::as_f64) {
                *value = Value::Number(Number::from(before(now_ms, hours)));
                return;
            }
            members.values_mut().for_each(|one| set_times(one, now_ms));
        }
        Value::Array(all) => all.iter_mut().for_each(|one| set_times(one, now_ms)),
        _ => {}
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the description has times within a year"
)]
fn before(now_ms: u64, hours: f64) -> u64 {
    now_ms.saturating_add_signed(-((hours * HOUR_MS) as i64))
}
