//! The last revision that wrote each place: a tree of marks beside the document.

use std::collections::BTreeMap;

use serde_json::Value;

use super::operation::AppliedChange;
use super::pointer::{Pointer, array_index};

/// The marks of revisions; at most one for each written place that still exists.
#[derive(Debug, Default)]
pub struct BlameTree {
    root: Mark,
}

#[derive(Debug, Default)]
struct Mark {
    /// The revision that wrote this place and everything below it, except places with their own mark.
    written: Option<u64>,
    /// The newest revision that removed something below.
    emptied: Option<u64>,
    below: BTreeMap<String, Self>,
}

impl BlameTree {
    /// Records one change of the revision `id`.
    pub fn follow(&mut self, id: u64, change: &AppliedChange) {
        let Some((above, key)) = change.at.split_last() else {
            return self
                .root
                .overwrite(id, change.old.as_ref(), change.new.as_ref());
        };
        let above = self.root.descend(&above);
        match (change.moved_others, array_index(key), &change.new) {
            (true, Some(index), Some(_)) => {
                above.shift(index, 1);
                above.mark(key).written = Some(id);
            }
            (true, Some(index), None) => {
                above.below.remove(key);
                above.shift(index, -1);
                above.emptied = Some(id);
            }
            (_, _, None) => {
                above.below.remove(key);
                above.emptied = Some(id);
            }
            (_, _, new) => above
                .mark(key)
                .overwrite(id, change.old.as_ref(), new.as_ref()),
        }
    }

    /// Returns the revision that wrote the value at `pointer`, which has nothing below it.
    pub fn of(&self, pointer: &Pointer) -> Option<u64> {
        let mut newest = self.root.written;
        let mut mark = Some(&self.root);
        for token in pointer.tokens() {
            mark = mark.and_then(|mark| mark.below.get(token));
            newest = newest.max(mark.and_then(|mark| mark.written));
        }
        newest.max(mark.and_then(|mark| mark.emptied))
    }

    /// Returns the newest revision that wrote at `pointer` or anywhere below it.
    pub fn newest_within(&self, pointer: &Pointer) -> Option<u64> {
        let mut mark = Some(&self.root);
        for token in pointer.tokens() {
            mark = mark.and_then(|mark| mark.below.get(token));
        }
        self.of(pointer).max(mark.and_then(Mark::newest))
    }
}

impl Mark {
    fn written_by(id: u64) -> Self {
        Self {
            written: Some(id),
            ..Self::default()
        }
    }

    fn mark(&mut self, key: &str) -> &mut Self {
        self.below.entry(key.to_owned()).or_default()
    }

    fn descend(&mut self, pointer: &Pointer) -> &mut Self {
        pointer
            .tokens()
            .iter()
            .fold(self, |mark, token| mark.mark(token))
    }

    /// Marks the differences between the old and the new value.
    fn overwrite(&mut self, id: u64, old: Option<&Value>, new: Option<&Value>) {
        match (old, new) {
            (Some(old), Some(new)) if old == new => {}
            (Some(Value::Object(old)), Some(Value::Object(new))) if !new.is_empty() => {
                for (key, value) in new {
                    self.mark(key).overwrite(id, old.get(key), Some(value));
                }
                for key in old.keys().filter(|key| !new.contains_key(*key)) {
                    self.below.remove(key);
                    self.emptied = Some(id);
                }
            }
            _ => *self = Self::written_by(id),
        }
    }

    /// Shifts the marks of a list's elements from `index` on by one.
    fn shift(&mut self, index: usize, by: isize) {
        let moved = |key: &String| array_index(key).filter(|at| *at >= index);
        let keys: Vec<String> = self
            .below
            .keys()
            .filter(|key| moved(key).is_some())
            .cloned()
            .collect();
        let marks: Vec<_> = keys
            .iter()
            .filter_map(|key| Some((moved(key)?, self.below.remove(key)?)))
            .collect();
        for (at, mark) in marks {
            let at = at.saturating_add_signed(by);
            self.below.insert(at.to_string(), mark);
        }
    }

    fn newest(&self) -> Option<u64> {
        let below = self.below.values().filter_map(Self::newest).max();
        self.written.max(self.emptied).max(below)
    }
}
