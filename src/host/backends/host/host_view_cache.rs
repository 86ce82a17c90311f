//! The helper's last view of what the sandbox hides from this process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::helper_client::{
    Capture, HelperClient, HostView, Operation, OperationEnd, OperationLimits,
};
use gatewren_base::sys::lock;

use super::super::source::HostTree;
use super::mounts::places_to_measure;
use super::mounts_and_clock::MountsAndClock;

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
pub struct HostViewCache {
    /// `None` for a recorded host.
    helper: Option<HelperClient>,
    last: Mutex<Option<Arc<MountsAndClock>>>,
}

impl HostViewCache {
    /// Returns a view through this helper.
    pub fn of(helper: HelperClient) -> Self {
        Self {
            helper: Some(helper),
            last: Mutex::default(),
        }
    }

    /// Asks the helper; if it does not answer, the last result stays.
    pub async fn refresh(&self) {
        let Some(helper) = &self.helper else { return };
        let looked = timeout(PATIENCE, query_view(helper)).await;
        if let Some(seen) = looked.ok().flatten() {
            *lock(&self.last) = Some(Arc::new(seen));
        }
    }

    /// Returns the helper's last view, or this process's own view if the helper never answered.
    pub fn current_view(&self, tree: &HostTree) -> Arc<MountsAndClock> {
        let last = lock(&self.last);
        last.clone().unwrap_or_else(|| {
            let mountinfo = tree.text("proc/self/mountinfo");
            Arc::new(MountsAndClock::of_this_process(
                &mountinfo.unwrap_or_default(),
            ))
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

async fn query_view(helper: &HelperClient) -> Option<MountsAndClock> {
    let view: HostView = ask(helper, Operation::HostView {}).await?;
    let places = places_to_measure(&view.mountinfo);
    let spaces = ask(helper, Operation::HostSpace { places }).await?;
    Some(MountsAndClock {
        mountinfo: view.mountinfo,
        clock_synchronised: view.clock_synchronised,
        spaces: Some(spaces),
    })
}

async fn ask<T: DeserializeOwned>(helper: &HelperClient, operation: Operation) -> Option<T> {
    let limits = OperationLimits {
        timeout_ms: u64::try_from(PATIENCE.as_millis()).unwrap_or(u64::MAX),
        output_bytes: ANSWER.head as u64,
        processes: 1,
    };
    let name = operation.name();
    // Only a debug message: other parts report the failure, and here the last result is still
    // usable.
    let log_failure =
        |cause: &dyn std::fmt::Display| tracing::debug!(%cause, name, "the helper did not answer");
    match helper.run(operation, limits, "observer", ANSWER).await {
        Ok(finished) if finished.ending == OperationEnd::SUCCESS => {
            let answer = serde_json::from_str(&finished.stdout.text_lossy());
            answer.inspect_err(|cause| log_failure(cause)).ok()
        }
        Ok(finished) => {
            log_failure(&finished.ending);
            None
        }
        Err(cause) => {
            log_failure(&cause);
            None
        }
    }
}
