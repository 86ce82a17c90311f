//! Finds the last revision, author and cause of each value in the document.

use std::collections::BTreeMap;

use rusqlite::Connection;
use serde::Serialize;
use serde_json::Value;

use super::blame_tree::BlameTree;
use super::error::StateError;
use super::history::{History, kept_revisions};
use super::log;
use super::pointer::Pointer;
use super::replay::{oldest_snapshot, replay};
use super::visibility::{Visibility, VisibleExtent};

/// Who wrote a part of the document.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Blame {
    /// The revision of the document.
    pub revision: u64,
    /// The oldest revision in the log; values older than it have no author.
    pub floor: u64,
    /// The last write anywhere in the part; `None` if it is older than the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<RevisionInfo>,
    /// The values in the part, in the order of their keys.
    pub leaves: Vec<BlameLeaf>,
    /// The number of further values, which are left out.
    pub left_out: usize,
}

/// A value with no other values below it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BlameLeaf {
    /// Its place in the document.
    pub pointer: Pointer,
    /// Who wrote it; `None` if the write is older than the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written: Option<RevisionInfo>,
}

/// A revision, without its changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RevisionInfo {
    /// Its number.
    pub revision: u64,
    /// When it was written, in milliseconds since 1970.
    pub at_ms: u64,
    /// Who wrote it: `observer`, `owner`, `agent:<id>` or `local:<program>`. If the key is known and the server did
    /// not write the revision, it is `local program (claims to be <actor>)`.
    pub actor: String,
    /// The audit id of the call that led to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

impl History {
    /// Returns who wrote the value at `pointer`, with at most `most` values below it; `None` if there is no such
    /// value.
    ///
    /// A value that is written again unchanged keeps its author. Elements of a list keep theirs when the list is
    /// shifted.
    pub fn blame(&self, pointer: &Pointer, most: usize) -> Result<Option<Blame>, StateError> {
        self.visible_blame(&Visibility::whole(), pointer, most)
    }

    /// Like `blame`, limited to the part of the document that `visibility` covers.
    pub fn visible_blame(
        &self,
        visibility: &Visibility,
        pointer: &Pointer,
        most: usize,
    ) -> Result<Option<Blame>, StateError> {
        let to_error = |error: rusqlite::Error| self.read_error(&error);
        let view = self.view()?;
        let snapshot = oldest_snapshot(self.path(), &view)?;
        let mut traces = BlameTree::default();
        let document = replay(self.path(), &view, &snapshot, u64::MAX, &mut |step| {
            for change in step.outcome.iter().flatten() {
                traces.follow(step.row.id, change);
            }
        })?;
        let value = pointer.get(&document.root);
        let Some(value) = value.and_then(|value| visibility.part(pointer, value)) else {
            return Ok(None);
        };
        let TracedLeaves {
            found,
            count,
            newest,
        } = collect_leaves(visibility, &traces, pointer, &value, most);
        let mut known = BTreeMap::new();
        let mut info_of = |id: Option<u64>| match id {
            Some(id) => revision_info(self, &view, visibility, id, &mut known).map_err(to_error),
            None => Ok(None),
        };
        let last = info_of(newest)?;
        let left_out = count - found.len();
        let mut leaves = Vec::with_capacity(found.len());
        for (pointer, id) in found {
            let written = info_of(id)?;
            leaves.push(BlameLeaf { pointer, written });
        }
        Ok(Some(Blame {
            revision: document.revision,
            floor: kept_revisions(&view).map_err(to_error)?.floor,
            last,
            leaves,
            left_out,
        }))
    }
}

/// Values with the revisions that wrote them.
struct TracedLeaves {
    found: Vec<(Pointer, Option<u64>)>,
    /// The number of values, including those left out of `found`.
    count: usize,
    /// The newest revision that wrote any of them.
    newest: Option<u64>,
}

/// Collects the values in `value`, which is the visible part at `pointer`; keeps at most `most` of them.
fn collect_leaves(
    visibility: &Visibility,
    traces: &BlameTree,
    pointer: &Pointer,
    value: &Value,
    most: usize,
) -> TracedLeaves {
    let mut collected = TracedLeaves {
        found: Vec::new(),
        count: 0,
        newest: None,
    };
    leaves(pointer, value, &mut |leaf| {
        // An object that looks empty may have been written for its invisible members.
        let is_whole = visibility.extent(leaf) == VisibleExtent::Whole;
        let id = traces.of(leaf).filter(|_| is_whole);
        collected.newest = collected.newest.max(id);
        collected.count += 1;
        if collected.found.len() < most {
            collected.found.push((leaf.clone(), id));
        }
    });
    if visibility.extent(pointer) == VisibleExtent::Whole {
        // Also counts revisions that removed something.
        collected.newest = traces.newest_within(pointer);
    }
    collected
}

/// Visits every value that has no other values below it.
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

fn revision_info(
    history: &History,
    connection: &Connection,
    visibility: &Visibility,
    id: u64,
    known: &mut BTreeMap<u64, Option<RevisionInfo>>,
) -> rusqlite::Result<Option<RevisionInfo>> {
    if let Some(found) = known.get(&id) {
        return Ok(found.clone());
    }
    let found = match log::row(connection, id)? {
        Some(row) => Some(RevisionInfo {
            revision: row.id,
            at_ms: row.at_ms,
            actor: visibility.author(history.author(connection, &row)?),
            cause: visibility.cause(row.cause),
        }),
        None => None,
    };
    known.insert(id, found.clone());
    Ok(found)
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;
    use serde_json::json;

    use gatewren_base::sys::Scratch;

    use super::super::testing::{add, at, database, foreign, insert, trim};
    use super::*;

    /// Returns who wrote the values at a place, by their pointers relative to it; 0 if the author is not known.
    fn writers(history: &History, place: &str) -> Vec<(String, u64)> {
        let blame = history.blame(&at(place), 100).unwrap().unwrap();
        assert_eq!(blame.left_out, 0);
        let leaf = |leaf: &BlameLeaf| {
            let by = leaf.written.as_ref().map_or(0, |by| by.revision);
            let from_here = leaf.pointer.to_string()[place.len()..].to_owned();
            (from_here, by)
        };
        blame.leaves.iter().map(leaf).collect()
    }

    fn pairs(expected: &[(&str, u64)]) -> Vec<(String, u64)> {
        let pair = |(at, id): &(&str, u64)| ((*at).to_owned(), *id);
        expected.iter().map(pair).collect()
    }

    fn patch(other: &Connection, patch: &Value) {
        insert(other, "local:test", patch);
    }

    #[test]
    fn each_value_has_the_revision_that_made_it_what_it_is() {
        let scratch = Scratch::new();
        let path = database(&scratch);
        let other = foreign(&path);
        add(
            &other,
            "/public/a",
            &json!({"x": 1, "y": {"z": 1}, "e": {}}),
        );
        insert(
            &other,
            "agent:7",
            &json!([{"op": "replace", "path": "/public/a/x", "value": 2}]),
        );
        patch(
            &other,
            &json!([{"op": "replace", "path": "/public/a/x", "value": 2}]),
        );
        add(
            &other,
            "/public/a",
            &json!({"x": 2, "y": {"z": 1, "w": 4}, "e": {}}),
        );
        patch(
            &other,
            &json!([{"op": "replace", "path": "/public/a/x", "value": 9},
                              {"op": "remove", "path": "/public/a/none"}]),
        );
        let history = History::open(&path).unwrap();
        let expected = pairs(&[("/e", 1), ("/x", 2), ("/y/w", 4), ("/y/z", 1)]);
        assert_eq!(writers(&history, "/public/a"), expected);

        let blame = history.blame(&at("/public/a/x"), 10).unwrap().unwrap();
        let writing = RevisionInfo {
            revision: 2,
            at_ms: 7,
            actor: "agent:7".into(),
            cause: Some("why".into()),
        };
        assert_eq!(blame.leaves[0].written, Some(writing.clone()));
        assert_eq!(blame.last, Some(writing));
        assert_eq!((blame.revision, blame.floor), (5, 1));
        let whole = history.blame(&at("/public/a"), 2).unwrap().unwrap();
        assert_eq!((whole.leaves.len(), whole.left_out), (2, 2));
        assert_eq!(whole.last.unwrap().revision, 4);
        assert_eq!(history.blame(&at("/public/none"), 2).unwrap(), None);
    }

    #[test]
    fn what_was_taken_away_is_blamed_on_the_part_it_stood_in() {
        let scratch = Scratch::new();
        let path = database(&scratch);
        let other = foreign(&path);
        add(&other, "/public/a", &json!({"x": 1}));
        patch(&other, &json!([{"op": "remove", "path": "/public/a/x"}]));
        let history = History::open(&path).unwrap();
        assert_eq!(writers(&history, "/public/a"), pairs(&[("", 2)]));
        add(&other, "/public/b", &json!(1));
        let last = history.blame(&at("/public/a"), 1).unwrap().unwrap().last;
        assert_eq!(last.unwrap().revision, 2);
    }

    #[test]
    fn elements_of_a_list_keep_their_authors_when_it_is_shifted() {
        let scratch = Scratch::new();
        let path = database(&scratch);
        let other = foreign(&path);
        add(&other, "/public/l", &json!([]));
        for name in ["a", "b", "c"] {
            add(&other, "/public/l/-", &json!(name));
        }
        add(&other, "/public/l/0", &json!("first"));
        let history = History::open(&path).unwrap();
        assert_eq!(
            writers(&history, "/public/l"),
            pairs(&[("/0", 5), ("/1", 2), ("/2", 3), ("/3", 4)])
        );
        patch(&other, &json!([{"op": "remove", "path": "/public/l/1"}]));
        assert_eq!(
            writers(&history, "/public/l"),
            pairs(&[("/0", 5), ("/1", 3), ("/2", 4)])
        );
    }

    #[test]
    fn what_is_older_than_the_log_has_no_author() {
        let scratch = Scratch::new();
        let path = database(&scratch);
        let other = foreign(&path);
        add(&other, "/public/a", &json!(1));
        add(&other, "/public/b", &json!({"x": 1, "y": 1}));
        add(&other, "/public/b/x", &json!(2));
        trim(
            &other,
            2,
            &json!({"public": {"a": 1, "b": {"x": 1, "y": 1}}}),
        );
        let history = History::open(&path).unwrap();
        assert_eq!(
            writers(&history, "/public"),
            pairs(&[("/a", 0), ("/b/x", 3), ("/b/y", 0)])
        );
        let blame = |place| history.blame(&at(place), 1).unwrap().unwrap();
        assert_eq!(blame("/public").floor, 3);
        assert_eq!(blame("/public/a").last, None);
        assert_eq!(blame("/public/b").last.unwrap().revision, 3);
    }
}
