//! A watcher's pen: writes what was seen into the state, and what went wrong into the log.

use serde_json::{Value, json};

use crate::state::{Author, Pointer, State, StateError};

use super::causes::Causes;
use super::complaints::Complaints;

/// Writes for one watcher.
#[derive(Debug)]
pub struct Scribe {
    state: State,
    causes: Causes,
    complaints: Complaints,
}

impl Scribe {
    /// One that writes into `state`, because of the call among `causes`.
    pub fn new(state: State, causes: Causes) -> Self {
        Self {
            state,
            causes,
            complaints: Complaints::default(),
        }
    }

    /// Makes `value` stand at the place with these keys; what stands there already makes no revision.
    pub async fn write(&mut self, place: &[&str], value: Value) {
        let at = place
            .iter()
            .fold(Pointer::root(), |above, key| above.child(*key));
        let cause = self.causes.only();
        let author = cause.into_iter().fold(Author::observer(), Author::because);
        let written: Result<u64, StateError> = self.state.put(&author, &at, Some(value)).await;
        self.note("the state", written);
    }

    /// Writes whether `what` can be seen on this box, in `/public/observer/<what>`.
    pub async fn available(&mut self, what: &str, why_not: Option<&str>) {
        let value = match why_not {
            None => json!({ "available": true }),
            Some(why) => json!({ "available": false, "why": why }),
        };
        self.write(&["public", "observer", what], value).await;
    }

    /// Notes how an attempt went and passes on what it gave; a failure that is told already stays silent.
    pub fn note<T, E: ToString>(&mut self, what: &'static str, result: Result<T, E>) -> Option<T> {
        self.complaints.note(what, result)
    }
}
