//! Logs failures of the database file once, until they change.

use tracing::{error, info};

use super::error::StateError;
use gatewren_base::sys::FailureLog;

/// The current failures of the file.
#[derive(Debug, Default)]
pub struct DatabaseFailures(FailureLog);

impl DatabaseFailures {
    /// Records an outcome. A failure that was already logged is not logged again.
    pub fn note<T>(&mut self, doing: &'static str, outcome: &Result<T, StateError>) {
        let cause = outcome.as_ref().err();
        // A rejected patch is no failure of the file.
        if cause.is_some_and(|cause| !cause.is_of_the_file()) {
            return;
        }
        let words = cause.map(ToString::to_string);
        if self.0.is_news(doing, words.as_deref()) {
            if let Some(cause) = cause {
                error!(doing, %cause, "an operation on the state database failed");
            } else {
                info!(doing, "the state database works again");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::patch::PatchError;
    use super::*;

    #[test]
    fn a_rejected_patch_is_no_failure_of_the_file() {
        let mut failures = DatabaseFailures::default();
        let full: StateError = StateError::Full("/state.db".into());
        let words = full.to_string();
        failures.note("test", &Err::<(), _>(full));
        failures.note("test", &Err::<(), _>(PatchError::NotAList.into()));
        assert!(!failures.0.is_news("test", Some(&words)));
        failures.note("test", &Ok(()));
        assert!(!failures.0.is_news("test", None));
    }
}
