//! Which agents used the server in a period, and from which addresses.

use rusqlite::named_params;

use super::table::AuditTable;
use crate::vault::error::VaultError;
use crate::vault::row::{from_column, to_column};

/// The most agents and addresses in an answer, the newest first.
const MAX_USES: u32 = 200;

/// The calls of one agent from one address in a period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentUse {
    /// The agent's current name; its id if it was removed.
    pub name: String,
    /// The address; empty for a client on standard input.
    pub address: String,
    /// The first call, in milliseconds since 1970.
    pub first_ms: u64,
    /// The number of calls.
    pub calls: u64,
}

/// The calls of one agent with one tool about one target that may have changed something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentChanges {
    /// The agent's current name; its id if it was removed.
    pub name: String,
    /// The tool.
    pub tool: String,
    /// The target, such as a container.
    pub target: Option<String>,
    /// The number of calls.
    pub calls: u64,
    /// The last call, in milliseconds since 1970.
    pub last_ms: u64,
}

/// The calls of agents in a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallCounts {
    /// All calls.
    pub calls: u64,
    /// Those that were refused.
    pub refused: u64,
}

impl AuditTable<'_> {
    /// Counts the calls since a time, in milliseconds since 1970. It reads only the rows of that time.
    ///
    /// # Errors
    /// When the vault cannot be read.
    pub fn count_calls(&self, since_ms: u64) -> Result<CallCounts, VaultError> {
        // The audit has no index of times, but the times of its rows ascend.
        const QUERY: &str = "SELECT count(*) FILTER (WHERE kind = 'intent' AND agent LIKE 'agent\\_%' ESCAPE '\\') AS calls,
                count(*) FILTER (WHERE outcome = 'refused') AS refused
            FROM audit
            WHERE seq > coalesce((SELECT seq FROM audit WHERE at_ms < ?1 ORDER BY seq DESC LIMIT 1), 0)";
        let shared = self.shared();
        shared.read_long("count the calls in the audit", |connection| {
            let mut select = connection.prepare_cached(QUERY)?;
            select.query_row([to_column(since_ms)], |row| {
                Ok(CallCounts {
                    calls: from_column(row, "calls")?,
                    refused: from_column(row, "refused")?,
                })
            })
        })
    }

    /// Returns the calls since a time that were allowed and were no reads, of one agent by its id or of all: at most
    /// 200 combinations of agent, tool and target, the newest first.
    ///
    /// # Errors
    /// When the vault cannot be read.
    pub fn changing_calls(
        &self,
        since_ms: u64,
        agent: Option<&str>,
    ) -> Result<Vec<AgentChanges>, VaultError> {
        const QUERY: &str = "SELECT coalesce(agent.name, audit.agent, 'owner') AS name, audit.tool, audit.target,
                count(*) AS calls, max(audit.at_ms) AS last
            FROM audit LEFT JOIN agent ON agent.id = audit.agent
            WHERE audit.kind = 'intent' AND audit.at_ms >= :since AND audit.tool IS NOT NULL
                AND audit.risk NOT IN ('read', 'scan', 'reveal') AND audit.decision IN ('allow', 'confirmed', 'granted', 'approved')
                AND (:agent IS NULL OR audit.agent = :agent)
            GROUP BY audit.agent, audit.tool, audit.target ORDER BY last DESC LIMIT :most";
        let shared = self.shared();
        shared.read_long("list the changes in the audit", |connection| {
            let values = named_params! {
                ":since": to_column(since_ms), ":agent": agent, ":most": MAX_USES
            };
            let mut select = connection.prepare_cached(QUERY)?;
            let calls = select.query_map(values, |row| {
                Ok(AgentChanges {
                    name: row.get("name")?,
                    tool: row.get("tool")?,
                    target: row.get("target")?,
                    calls: from_column(row, "calls")?,
                    last_ms: from_column(row, "last")?,
                })
            })?;
            calls.collect()
        })
    }

    /// Returns which agents made calls from `since_ms` to `until_ms`, both in milliseconds since 1970: at most 200
    /// pairs of agent and address, newest first. Trimmed rows are missing.
    ///
    /// # Errors
    /// When the vault cannot be read.
    pub fn agent_uses(&self, since_ms: u64, until_ms: u64) -> Result<Vec<AgentUse>, VaultError> {
        const QUERY: &str = "SELECT coalesce(agent.name, audit.agent) AS name, coalesce(audit.address, '') AS address,
                min(audit.at_ms) AS first, count(*) AS calls
            FROM audit LEFT JOIN agent ON agent.id = audit.agent
            WHERE audit.kind = 'intent' AND audit.agent LIKE 'agent\\_%' ESCAPE '\\'
                AND audit.at_ms BETWEEN :since AND :until
            GROUP BY audit.agent, audit.address ORDER BY first DESC LIMIT :most";
        let shared = self.shared();
        shared.read_long("list the agents in the audit", |connection| {
            let values = named_params! {
                ":since": to_column(since_ms), ":until": to_column(until_ms), ":most": MAX_USES
            };
            let mut select = connection.prepare_cached(QUERY)?;
            let uses = select.query_map(values, |row| {
                Ok(AgentUse {
                    name: row.get("name")?,
                    address: row.get("address")?,
                    first_ms: from_column(row, "first")?,
                    calls: from_column(row, "calls")?,
                })
            })?;
            uses.collect()
        })
    }
}
