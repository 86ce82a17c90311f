//! Logs each persistent failure once, until it changes.

use std::collections::BTreeMap;

use tracing::{info, warn};

/// The current failures, by operation.
#[derive(Debug, Default)]
pub struct FailureLog {
    present: BTreeMap<&'static str, String>,
}

impl FailureLog {
    /// Records the result of an attempt and returns its value; a failure that was already logged is not logged
    /// again.
    pub fn note<T, E: ToString>(&mut self, what: &'static str, result: Result<T, E>) -> Option<T> {
        match result {
            Ok(value) => {
                if self.present.remove(what).is_some() {
                    info!(what, "works again");
                }
                Some(value)
            }
            Err(cause) => {
                let cause = cause.to_string();
                if self.present.get(what) != Some(&cause) {
                    warn!(what, cause, "cannot observe");
                    self.present.insert(what, cause);
                }
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_present_until_it_works_again() {
        let mut complaints = FailureLog::default();
        assert_eq!(complaints.note("x", Err::<(), _>("broken")), None);
        assert_eq!(
            complaints.present.get("x").map(String::as_str),
            Some("broken")
        );
        assert_eq!(complaints.note("y", Ok::<_, String>(1)), Some(1));
        assert_eq!(complaints.note("x", Ok::<_, String>(2)), Some(2));
        assert!(complaints.present.is_empty());
    }
}
