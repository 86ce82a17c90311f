//! Answers a cursor: the revisions after it that touch a place.

use std::ops::ControlFlow;

use rusqlite::Connection;
use serde_json::Value;

use super::changes::{Revision, RevisionsSince};
use super::document::Document;
use super::log;
use super::pointer::Pointer;
use super::visibility::Visibility;

/// The most revisions that one query reads from the log; the next cursor continues from there.
const MAX_SCAN: u64 = 10_000;

/// The most JSON text of the revisions in one answer, in bytes. The first revision is always included; the next
/// cursor returns the rest.
const MAX_ANSWER_BYTES: usize = 1024 * 1024;

/// A query of the log.
#[derive(Debug, Clone, Copy)]
pub struct RevisionQuery<'q> {
    /// The revision after which to look.
    pub after: u64,
    /// The newest revision to include; limited to the newest that exists.
    pub upto: u64,
    /// What the caller can see.
    pub visibility: &'q Visibility,
    /// The place to look at.
    pub scope: &'q Pointer,
    /// The most revisions of the answer; at least one is returned.
    pub most: usize,
}

impl RevisionQuery<'_> {
    /// Returns the last revision to read. A caller with a limited view gets no scan limit: it would reveal how many
    /// revisions there are.
    fn last(&self) -> u64 {
        if self.visibility.is_whole() {
            self.upto.min(self.after.saturating_add(MAX_SCAN))
        } else {
            self.upto
        }
    }
}

/// Returns the revisions up to that of `now`, the newest known document.
///
/// `is_refused` returns whether a revision did not apply.
pub fn answer(
    reader: &Connection,
    now: &Document,
    question: &RevisionQuery<'_>,
    is_refused: &mut dyn FnMut(u64) -> rusqlite::Result<bool>,
) -> rusqlite::Result<RevisionsSince> {
    let after = question.after;
    let kept = log::kept_range(reader)?;
    let floor = kept.map_or(now.revision + 1, |(oldest, _)| oldest);
    let next = after.saturating_add(1);
    let newest = question.upto.min(now.revision);
    if after > newest || next < floor {
        return Ok(RevisionsSince::Resync {
            floor,
            upto: newest,
        });
    }
    let last = question.last().min(newest);
    let mut answer = Answer {
        revisions: Vec::new(),
        upto: last,
        bytes: 0,
    };
    let mut refused = Ok(false);
    log::walk(reader, next..=last, &mut |row| {
        refused = is_refused(row.id);
        match refused {
            Ok(false) => answer.take(row, question, &now.root),
            Ok(true) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    })?;
    refused?;
    let Answer {
        revisions, upto, ..
    } = answer;
    Ok(RevisionsSince::Revisions {
        revisions,
        upto,
        more: upto < newest,
    })
}

/// An answer that grows until it is large enough.
struct Answer {
    revisions: Vec<Revision>,
    upto: u64,
    bytes: usize,
}

impl Answer {
    fn take(
        &mut self,
        row: log::LogRow,
        question: &RevisionQuery<'_>,
        document: &Value,
    ) -> ControlFlow<()> {
        let RevisionQuery {
            visibility, scope, ..
        } = *question;
        let (id, bytes) = (row.id, row.patch.len());
        let Some(revision) = Revision::in_scope(visibility, scope, row, document) else {
            return ControlFlow::Continue(());
        };
        self.bytes += bytes;
        let full = self.revisions.len() >= question.most.max(1) || self.bytes > MAX_ANSWER_BYTES;
        if full && !self.revisions.is_empty() {
            self.upto = id - 1;
            return ControlFlow::Break(());
        }
        self.revisions.push(revision);
        ControlFlow::Continue(())
    }
}
