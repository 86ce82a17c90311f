//! Whether what a change rests on has moved since it was proposed, by the log of the state.

use std::path::Path;

use serde_json::{Value, json};

use crate::state::{Filter, History, Pointer};
use crate::vault::Change;

/// Whether what a change rests on has moved since.
pub enum Movement {
    /// It may be about anything.
    RestsOnNothing,
    /// It has not.
    None,
    /// It has, last at this revision, written by somebody.
    At(u64, String),
    /// The log does not reach back so far, or cannot be read.
    Unknown,
}

impl Movement {
    /// As JSON: the revision, false, or null when nobody knows.
    pub fn to_json(&self) -> Value {
        match self {
            Self::RestsOnNothing | Self::None => json!(false),
            Self::At(revision, _) => json!(revision),
            Self::Unknown => Value::Null,
        }
    }
}

/// Looks whether it has.
pub fn movement(state: Option<&Path>, change: &Change) -> Movement {
    if change.rests_on.is_empty() {
        return Movement::RestsOnNothing;
    }
    let looked = state.and_then(|path| moved(path, change).ok());
    looked.unwrap_or(Movement::Unknown)
}

fn moved(path: &Path, change: &Change) -> Result<Movement, String> {
    let history = History::open(path).map_err(|e| e.to_string())?;
    let kept = history.kept().map_err(|e| e.to_string())?;
    if kept.floor > change.revision + 1 || kept.newest < change.revision {
        return Ok(Movement::Unknown);
    }
    let mut last = None;
    for pointer in &change.rests_on {
        let filter = Filter {
            scope: Pointer::parse(pointer).map_err(|e| e.to_string())?,
            after: change.revision,
            actor: None,
            most: 1,
        };
        let entries = history.log(&filter).map_err(|e| e.to_string())?;
        let newest = entries.into_iter().find(|entry| entry.refused.is_none());
        last = last.max(newest.map(|entry| (entry.revision.id, entry.revision.actor)));
    }
    Ok(last.map_or(Movement::None, |(revision, actor)| {
        Movement::At(revision, actor)
    }))
}
