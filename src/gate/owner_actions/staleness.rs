//! Determines from the log of the state whether the basis of a change has been modified since it was proposed.

use serde_json::{Value, json};

use gatewren_store::state::{HistoryFilter, Pointer, StateLogReader};
use gatewren_store::vault::Change;

/// Whether the basis of a change has been modified.
pub enum Staleness {
    /// The change does not depend on any part of the state.
    RestsOnNothing,
    /// It has not been modified.
    None,
    /// It has been modified; the last revision and its actor.
    At(u64, String),
    /// The log does not reach back far enough, or cannot be read.
    Unknown,
}

impl Staleness {
    /// Returns it as JSON: the revision, false, or null if unknown.
    pub fn to_json(&self) -> Value {
        match self {
            Self::RestsOnNothing | Self::None => json!(false),
            Self::At(revision, _) => json!(revision),
            Self::Unknown => Value::Null,
        }
    }
}

/// Looks it up in the log; without one it is unknown.
pub fn find_staleness(log: Option<&StateLogReader>, change: &Change) -> Staleness {
    if change.rests_on.is_empty() {
        return Staleness::RestsOnNothing;
    }
    let looked = log.and_then(|log| compare_history(log, change).ok());
    looked.unwrap_or(Staleness::Unknown)
}

fn compare_history(log: &StateLogReader, change: &Change) -> Result<Staleness, String> {
    let kept = log.kept_revisions().map_err(|e| e.to_string())?;
    if kept.floor > change.revision + 1 || kept.newest < change.revision {
        return Ok(Staleness::Unknown);
    }
    let mut last = None;
    for pointer in &change.rests_on {
        let filter = HistoryFilter {
            scope: Pointer::parse(pointer).map_err(|e| e.to_string())?,
            after: change.revision,
            actor: None,
            most: 1,
        };
        let entries = log.entries(&filter).map_err(|e| e.to_string())?;
        let newest = entries.into_iter().find(|entry| entry.refused.is_none());
        last = last.max(newest.map(|entry| (entry.revision.id, entry.revision.actor)));
    }
    Ok(last.map_or(Staleness::None, |(revision, actor)| {
        Staleness::At(revision, actor)
    }))
}
