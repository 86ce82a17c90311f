//! A schedule: a call of an agent's, and the times at which the server makes it.

use ring::digest::{Context, SHA256};
use rusqlite::Row;
use serde_json::{Map, Value};

use crate::vault::row::{from_column, from_optional};

/// A schedule as stored in the vault. Times are milliseconds since 1970.
#[expect(clippy::struct_excessive_bools, reason = "each is a column of its row")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// The id: `sch_` and 16 hexadecimal digits.
    pub id: String,
    /// The agent that created it. Each run is a call of this agent.
    pub agent: String,
    /// The space of the agent at that time.
    pub space: String,
    /// The name that the agent gave it, unique among the agent's schedules.
    pub name: String,
    /// The tool to run.
    pub tool: String,
    /// The target, such as a container's name.
    pub target: Option<String>,
    /// The exact arguments as canonical JSON.
    pub arguments: String,
    /// The times, in systemd's calendar syntax.
    pub at: String,
    /// Whether a run that was missed is made up for once.
    pub catch_up: bool,
    /// The preset of the agent's policy at that time.
    pub preset: String,
    /// The differences from this preset, as a JSON object.
    pub overrides: String,
    /// The change of the inbox in which the owner approved it; `None` if the policy needed no approval.
    pub approval: Option<String>,
    /// When it was created.
    pub created_ms: u64,
    /// Whether it is paused.
    pub paused: bool,
    /// Why it has ended; `None` while it is active.
    pub ended: Option<String>,
    /// The time of the next run; `None` if there is none.
    pub next_ms: Option<u64>,
    /// The time that the newest run was for.
    pub last_due_ms: Option<u64>,
    /// Whether the owner wants a run now.
    pub run_now: bool,
    /// Whether the newest run that has ended failed.
    pub failing: bool,
}

/// A schedule to create.
#[derive(Debug, Clone)]
pub struct NewSchedule {
    /// The agent.
    pub agent: String,
    /// The space of the agent.
    pub space: String,
    /// The name.
    pub name: String,
    /// The tool to run.
    pub tool: String,
    /// The target, such as a container's name.
    pub target: Option<String>,
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// The times, in systemd's calendar syntax.
    pub at: String,
    /// Whether a run that was missed is made up for once.
    pub catch_up: bool,
    /// The preset of the agent's policy.
    pub preset: String,
    /// The differences from this preset, as a JSON object.
    pub overrides: String,
    /// The change of the inbox in which the owner approved it.
    pub approval: Option<String>,
    /// The time of the first run, in milliseconds since 1970.
    pub next_ms: u64,
}

impl Schedule {
    /// Returns the arguments, if they can be parsed.
    pub fn arguments(&self) -> Option<Map<String, Value>> {
        serde_json::from_str(&self.arguments).ok()
    }

    /// Returns whether it runs at its times: neither paused nor ended.
    pub fn is_active(&self) -> bool {
        !self.paused && self.ended.is_none()
    }

    /// Returns the digest of everything that was approved: a row with another digest never runs.
    pub(in crate::vault) fn binding(&self) -> [u8; 32] {
        let mut context = Context::new(&SHA256);
        let catch_up = self.catch_up.to_string();
        let parts = [
            self.id.as_str(),
            &self.agent,
            &self.space,
            &self.name,
            &self.tool,
            &self.arguments,
            &self.at,
            &catch_up,
            &self.preset,
            &self.overrides,
            self.approval.as_deref().unwrap_or_default(),
        ];
        for part in parts {
            // The length prevents two different lists of parts from having the same digest.
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part.as_bytes());
        }
        context.finish().as_ref().try_into().unwrap_or_default()
    }
}

/// Reads a row with all columns.
pub(in crate::vault) fn read_schedule(row: &Row<'_>) -> Result<Schedule, rusqlite::Error> {
    Ok(Schedule {
        id: row.get("id")?,
        agent: row.get("agent")?,
        space: row.get("space")?,
        name: row.get("name")?,
        tool: row.get("tool")?,
        target: row.get("target")?,
        arguments: row.get("arguments")?,
        at: row.get("at")?,
        catch_up: row.get("catch_up")?,
        preset: row.get("preset")?,
        overrides: row.get("overrides")?,
        approval: row.get("approval")?,
        created_ms: from_column(row, "created_ms")?,
        paused: row.get("paused")?,
        ended: row.get("ended")?,
        next_ms: from_optional(row, "next_ms")?,
        last_due_ms: from_optional(row, "last_due_ms")?,
        run_now: row.get("run_now")?,
        failing: row.get("failing")?,
    })
}
