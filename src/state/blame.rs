//! Who wrote what stands in the document: the last revision, author and cause of each value.

use std::collections::BTreeMap;

use rusqlite::Connection;
use serde::Serialize;
use serde_json::Value;

use super::error::StateError;
use super::history::{History, kept};
use super::log;
use super::pointer::Pointer;
use super::replay::{oldest_snapshot, replay};
use super::traces::Traces;

/// Who wrote a part of the document.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Blame {
    /// The revision of the document.
    pub revision: u64,
    /// The oldest revision in the log: what is older has no author.
    pub floor: u64,
    /// The last writing anywhere in the part; nothing if it is older than the log.
    pub last: Option<Writing>,
    /// The values in the part, in the order of their keys.
    pub leaves: Vec<Leaf>,
    /// How many further values there are, which are left out.
    pub left_out: usize,
}

/// A value that has no others below it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Leaf {
    /// Where it stands.
    pub pointer: Pointer,
    /// Who wrote it; nothing if that is older than the log.
    pub written: Option<Writing>,
}

/// A revision, without what it changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Writing {
    /// Its number.
    pub revision: u64,
    /// When it was written, in milliseconds since 1970.
    pub at_ms: u64,
    /// Who wrote it: `observer`, `owner`, `agent:<id>` or `local:<program>`.
    pub actor: String,
    /// The audit id of the call that led to it.
    pub cause: Option<String>,
}

impl History {
    /// Who wrote what stands at `pointer`, with at most `most` values below it; nothing if nothing stands
    /// there.
    ///
    /// A value that was written again as it stood keeps its author; elements of a list keep theirs when the
    /// list is shifted. Before the oldest snapshot the patches alone are known: there a list whose elements
    /// were inserted or removed counts as written whole.
    pub fn blame(&self, pointer: &Pointer, most: usize) -> Result<Option<Blame>, StateError> {
        let said = |error: rusqlite::Error| self.said(&error);
        let view = self.view()?;
        let snapshot = oldest_snapshot(self.path(), &view)?;
        let mut traces = Traces::default();
        traces
            .before(&view, &snapshot)
            .map_err(|error| self.said(&error))?;
        let document = replay(self.path(), &view, &snapshot, u64::MAX, &mut |step| {
            for change in step.outcome.iter().flatten() {
                traces.follow(step.row.id, change);
            }
        })?;
        let Some(value) = pointer.get(&document.root) else {
            return Ok(None);
        };
        let mut found = Vec::new();
        let mut count = 0;
        leaves(pointer, value, &mut |leaf| {
            count += 1;
            if found.len() < most {
                found.push(leaf.clone());
            }
        });
        let mut known = BTreeMap::new();
        let last = match traces.newest_within(pointer) {
            Some(id) => writing(&view, id, &mut known).map_err(said)?,
            None => None,
        };
        let left_out = count - found.len();
        let mut leaves = Vec::with_capacity(found.len());
        for pointer in found {
            let written = match traces.of(&pointer) {
                Some(id) => writing(&view, id, &mut known).map_err(said)?,
                None => None,
            };
            leaves.push(Leaf { pointer, written });
        }
        Ok(Some(Blame {
            revision: document.revision,
            floor: kept(&view).map_err(said)?.floor,
            last,
            leaves,
            left_out,
        }))
    }
}

/// Shows every value that has none below it.
fn leaves(at: &Pointer, value: &Value, visit: &mut dyn FnMut(&Pointer)) {
    match value {
        Value::Object(map) if !map.is_empty() => map
            .iter()
            .for_each(|(key, value)| leaves(&at.child(key), value, visit)),
        Value::Array(list) if !list.is_empty() => list
            .iter()
            .enumerate()
            .for_each(|(index, value)| leaves(&at.child(index.to_string()), value, visit)),
        _ => visit(at),
    }
}

fn writing(
    connection: &Connection,
    id: u64,
    known: &mut BTreeMap<u64, Option<Writing>>,
) -> rusqlite::Result<Option<Writing>> {
    if let Some(found) = known.get(&id) {
        return Ok(found.clone());
    }
    let found = log::row(connection, id)?.map(|row| Writing {
        revision: row.id,
        at_ms: row.at_ms,
        actor: row.actor,
        cause: row.cause,
    });
    known.insert(id, found.clone());
    Ok(found)
}
