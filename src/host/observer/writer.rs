//! The output of a watcher: writes observations into the state, and failures into the log.

use serde_json::{Value, json};
use tracing::{info, warn};

use super::causes::Causes;
use super::kept_parts::{KeptPart, KeptParts};
use gatewren_base::sys::FailureLog;
use gatewren_store::state::{Author, Pointer, State};

/// Writes for one watcher.
#[derive(Debug)]
pub struct WatcherOutput {
    state: State,
    causes: Causes,
    kept: KeptParts,
    failures: FailureLog,
    /// What was observed before. Only its failure is a warning: what never worked is missing on this host, and
    /// `/public/observer` has the reason.
    worked: Vec<&'static str>,
}

/// The name of a write into the state, which works on every host.
const STATE: &str = "the state";

impl WatcherOutput {
    /// Creates a writer into `state`, which attributes changes to a call of `causes` and keeps the values in `kept`.
    pub fn new(state: State, causes: Causes, kept: KeptParts) -> Self {
        Self {
            state,
            causes,
            kept,
            failures: FailureLog::default(),
            worked: vec![STATE],
        }
    }

    /// Sets the value at this path; an unchanged value makes no revision.
    pub async fn write(&mut self, place: &[&str], value: Value) {
        let at = place
            .iter()
            .fold(Pointer::root(), |above, key| above.child(*key));
        let cause = self.causes.only();
        let author = cause.into_iter().fold(Author::observer(), Author::because);
        let part = KeptPart { at, value };
        let written = self.kept.write(&self.state, &author, part).await;
        self.note(STATE, written);
    }

    /// Writes whether `what` can be observed on this host, in `/public/observer/<what>`.
    pub async fn available(&mut self, what: &str, why_not: Option<&str>) {
        let value = match why_not {
            None => json!({ "available": true }),
            Some(why) => json!({ "available": false, "why": why }),
        };
        self.write(&["public", "observer", what], value).await;
    }

    /// Records the result of an attempt and returns its value; a failure that was already logged is not logged
    /// again.
    pub fn note<T, E: ToString>(&mut self, what: &'static str, result: Result<T, E>) -> Option<T> {
        let cause = result.as_ref().err().map(ToString::to_string);
        let has_worked = self.worked.contains(&what);
        if self.failures.is_news(what, cause.as_deref()) {
            match &cause {
                Some(cause) if has_worked => warn!(what, cause, "cannot observe"),
                Some(cause) => info!(what, cause, "cannot observe"),
                None => info!(what, "works again"),
            }
        }
        if cause.is_none() && !has_worked {
            self.worked.push(what);
        }
        result.ok()
    }
}
