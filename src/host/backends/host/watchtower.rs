//! The helper's last view of what the sandbox hides from this process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::helper_client::{Capture, Ending, Helper, HostView, Limits, Operation};

use super::super::source::Tree;
use super::mounts::places_to_measure;
use super::seen::Seen;

/// The timeout of one query; after it the last result stays in use.
const PATIENCE: Duration = Duration::from_secs(3);

/// The maximum size of an answer, in bytes: the mounts of some thousand containers. A longer answer
/// is discarded.
const ANSWER: Capture = Capture {
    head: 1024 * 1024,
    tail: 0,
};

/// Asks the helper and remembers its last answer.
#[derive(Debug, Default)]
pub struct Watchtower {
    /// `None` for a recorded host.
    helper: Option<Helper>,
    last: Mutex<Option<Arc<Seen>>>,
}

impl Watchtower {
    /// Returns a view through this helper.
    pub fn of(helper: Helper) -> Self {
        Self {
            helper: Some(helper),
            last: Mutex::default(),
        }
    }

    /// Asks the helper; if it does not answer, the last result stays.
    pub async fn look(&self) {
        let Some(helper) = &self.helper else { return };
        let looked = timeout(PATIENCE, view(helper)).await;
        if let Some(seen) = looked.ok().flatten() {
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(seen));
        }
    }

    /// Returns the helper's last view, or this process's own view if the helper never answered.
    pub fn seen(&self, tree: &Tree) -> Arc<Seen> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.clone().unwrap_or_else(|| {
            let mountinfo = tree.text("proc/self/mountinfo");
            Arc::new(Seen::by_ourselves(&mountinfo.unwrap_or_default()))
        })
    }

    /// Returns the programs that have these sockets, by inode; `None` if the helper does not
    /// answer.
    pub async fn programs(&self, sockets: BTreeSet<u64>) -> Option<BTreeMap<u64, String>> {
        let sockets = sockets.into_iter().collect();
        let operation = Operation::HostPrograms { sockets };
        let asked = ask(self.helper.as_ref()?, operation);
        timeout(PATIENCE, asked).await.ok()?
    }
}

async fn view(helper: &Helper) -> Option<Seen> {
    let view: HostView = ask(helper, Operation::HostView {}).await?;
    let places = places_to_measure(&view.mountinfo);
    let spaces = ask(helper, Operation::HostSpace { places }).await?;
    Some(Seen {
        mountinfo: view.mountinfo,
        clock_synchronised: view.clock_synchronised,
        spaces: Some(spaces),
    })
}

async fn ask<T: DeserializeOwned>(helper: &Helper, operation: Operation) -> Option<T> {
    let limits = Limits {
        timeout_ms: u64::try_from(PATIENCE.as_millis()).unwrap_or(u64::MAX),
        output_bytes: ANSWER.head as u64,
        processes: 1,
    };
    let name = operation.name();
    // Only a debug message: other parts report the failure, and here the last result is still
    // usable.
    let unanswered =
        |cause: &dyn std::fmt::Display| tracing::debug!(%cause, name, "the helper did not answer");
    match helper.run(operation, limits, "observer", ANSWER).await {
        Ok(told) if told.ending == (Ending::Exited { code: 0 }) => {
            let told = serde_json::from_str(&told.stdout.text_lossy());
            told.inspect_err(|cause| unanswered(cause)).ok()
        }
        Ok(told) => {
            unanswered(&told.ending);
            None
        }
        Err(cause) => {
            unanswered(&cause);
            None
        }
    }
}
