//! How many calls each agent made in each hour, and how many of them were refused.

use rusqlite::params;

use super::table::AuditTable;
use super::uses::CallCounts;
use crate::vault::error::VaultError;
use crate::vault::row::{from_column, to_column};

/// The most rows of the audit that are read, the newest.
const MAX_ROWS: u32 = 200_000;

/// The calls of one agent in one hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HourOfCalls {
    /// The agent's id.
    pub agent: String,
    /// The begin of the hour in UTC, in milliseconds since 1970.
    pub begin_ms: u64,
    /// Its calls.
    pub counts: CallCounts,
}

impl AuditTable<'_> {
    /// Counts the calls since a time, in milliseconds since 1970, by agent and hour; of very many the newest.
    ///
    /// # Errors
    /// When the vault cannot be read.
    pub fn calls_by_hour(&self, since_ms: u64) -> Result<Vec<HourOfCalls>, VaultError> {
        // The audit has no index of times, but the times of its rows ascend.
        const QUERY: &str = "SELECT i.agent, i.at_ms / 3600000 * 3600000 AS begin, count(*) AS calls,
                count(*) FILTER (WHERE i.decision = 'deny' OR coalesce(i.outcome, o.outcome) = 'refused') AS refused
            FROM audit i LEFT JOIN audit o ON i.outcome IS NULL AND o.call = i.call AND o.kind = 'outcome'
            WHERE i.kind = 'intent' AND i.agent LIKE 'agent\\_%' ESCAPE '\\' AND i.seq > max(
                coalesce((SELECT seq FROM audit WHERE at_ms < ?1 ORDER BY seq DESC LIMIT 1), 0),
                (SELECT coalesce(max(seq), 0) FROM audit) - ?2)
            GROUP BY i.agent, begin";
        let doing = "count the calls of each hour in the audit";
        self.shared().read_long(doing, |connection| {
            let mut select = connection.prepare_cached(QUERY)?;
            let hours = select.query_map(params![to_column(since_ms), MAX_ROWS], |row| {
                Ok(HourOfCalls {
                    agent: row.get("agent")?,
                    begin_ms: from_column(row, "begin")?,
                    counts: CallCounts {
                        calls: from_column(row, "calls")?,
                        refused: from_column(row, "refused")?,
                    },
                })
            })?;
            hours.collect()
        })
    }
}
