//! Notifies open pages of changes, so that they reload their content.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::time::sleep;

use super::frame::add_guards;
use super::page_error::PageError;
use super::site::{PageResult, SignedInRequest};
use super::texts;
use gatewren_gate::http::events as stream;

/// The maximum number of concurrently notified pages; further ones show an error and are not updated.
const MAX_READERS: u32 = 32;

/// Changes within this time are one notification.
const SETTLE: Duration = Duration::from_millis(200);

/// Decrements the count when the stream ends.
struct Reader(Arc<AtomicU32>);

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Sends one message for each change of the inbox, the agents, the state or the samples, until the owner signs out
/// here.
pub fn events(asked: &SignedInRequest<'_>) -> PageResult {
    let site = asked.site;
    let before = site.readers.fetch_add(1, Ordering::Relaxed);
    let reader = Reader(site.readers.clone());
    if before >= MAX_READERS {
        return Err(PageError::Refused(texts::TOO_MANY_READERS.to_owned()));
    }
    let (logins, key) = (site.logins.clone(), asked.session.key);
    let mut inbox = site.vault.changes().watch_inbox();
    let mut agents = site.vault.agents().changes();
    let mut state = site.state.watch_revision();
    let mut samples = site.samples.watch_samples();
    // Before anything else is read: every later change notifies.
    let missed = asked
        .visit
        .query("seen")
        .is_some_and(|seen| seen != site.stamp());
    let mut response = stream(move |sender| async move {
        let _reader = reader;
        if missed && sender.message(None, b"moved").await.is_err() {
            return;
        }
        let over = logins.wait_for_end(key);
        tokio::pin!(over);
        loop {
            tokio::select! {
                () = &mut over => return,
                _ = inbox.changed() => {}
                _ = agents.changed() => {}
                _ = state.changed() => {}
                _ = samples.changed() => {}
            }
            sleep(SETTLE).await;
            inbox.mark_unchanged();
            agents.mark_unchanged();
            state.mark_unchanged();
            samples.mark_unchanged();
            if sender.message(None, b"moved").await.is_err() {
                return;
            }
        }
    });
    add_guards(&mut response);
    Ok(response)
}
