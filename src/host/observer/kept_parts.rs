//! Restores what another program has changed in the parts of the state that watchers write.
//!
//! Every program that may write the database can write anywhere in the document. A watcher would notice at its next
//! look only, which may be half a minute later.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::sleep;
use tracing::{debug, info};

use gatewren_store::state::{Author, Pointer, State, StateError};

/// The time from a revision to the comparison, and so the minimum between two comparisons: a program that writes in a
/// loop costs at most five corrections a second.
const COMPARE_AFTER: Duration = Duration::from_millis(200);

/// The parts, each with the value that its watcher wrote last. Cloning shares them.
#[derive(Debug, Clone, Default)]
pub struct KeptParts(Arc<Mutex<BTreeMap<Pointer, Value>>>);

impl KeptParts {
    /// Writes a watcher's value and keeps it. An unchanged value makes no revision.
    ///
    /// # Errors
    /// If the state cannot be written. The value is kept nevertheless.
    pub async fn write(
        &self,
        state: &State,
        author: &Author,
        part: KeptPart,
    ) -> Result<u64, StateError> {
        let KeptPart { at, value } = part;
        // Held until it is written: a correction in between would write it without its cause.
        let mut kept = self.0.lock().await;
        if kept.get(&at) != Some(&value) {
            kept.insert(at.clone(), value.clone());
        }
        state.put(author, &at, Some(value)).await
    }

    /// Compares after each revision, while it is polled.
    pub async fn keep(self, state: State) {
        let mut revisions = state.watch_revision();
        loop {
            if revisions.changed().await.is_err() {
                return std::future::pending().await;
            }
            sleep(COMPARE_AFTER).await;
            revisions.mark_unchanged();
            self.correct(&state).await;
        }
    }

    async fn correct(&self, state: &State) {
        let kept = self.0.lock().await;
        let document = state.document();
        let changed = kept
            .iter()
            .filter(|(at, value)| at.get(&document.root) != Some(*value));
        for (at, value) in changed {
            let put = state
                .put(&Author::observer(), at, Some(value.clone()))
                .await;
            match put {
                Ok(_) => info!(part = %at, "corrected what another program had written"),
                // The watcher that writes this part reports the error.
                Err(cause) => debug!(part = %at, %cause, "not corrected"),
            }
        }
    }
}

/// A value of a watcher.
#[derive(Debug)]
pub struct KeptPart {
    /// Its place in the document.
    pub at: Pointer,
    /// The value.
    pub value: Value,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use gatewren_base::sys::Scratch;

    use super::*;

    #[tokio::test]
    async fn what_others_write_in_a_part_is_corrected_and_the_rest_is_theirs() {
        let scratch = Scratch::new();
        let state = State::open(&scratch.join("state.db")).unwrap();
        let parts = KeptParts::default();
        let pointer = |text: &str| Pointer::parse(text).unwrap();
        let part = KeptPart {
            at: pointer("/public/packageData"),
            value: json!({ "web": { "status": "running" } }),
        };
        let written = parts.write(&state, &Author::observer(), part).await;
        written.unwrap();
        let keeping = tokio::spawn(parts.keep(state.clone()));
        let mut revisions = state.watch_revision();
        let other = Author::observer().because("other");
        let whole = |document: &Value| document.clone();
        for (at, value) in [
            ("/public/packageData/web/status", Some(json!("stopped"))),
            ("/public/packageData/ghost", Some(json!({}))),
            ("/public/packageData", None),
            ("/public", Some(json!({}))),
        ] {
            state.put(&other, &pointer(at), value).await.unwrap();
            state
                .put(&other, &pointer("/public/notes"), Some(json!(at)))
                .await
                .unwrap();
            let expected = json!({ "public": {
                "packageData": { "web": { "status": "running" } }, "notes": at,
            } });
            let corrected = revisions.wait_for(|_| whole(&state.document().root) == expected);
            tokio::time::timeout(Duration::from_mins(1), corrected)
                .await
                .expect(at)
                .unwrap();
        }
        keeping.abort();
    }
}
