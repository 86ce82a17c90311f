//! Finds out which failures are worth a line in the log: a lasting one is logged once, until it changes.

use std::collections::BTreeMap;

/// The current failures, by operation.
#[derive(Debug, Default)]
pub struct FailureLog(BTreeMap<&'static str, String>);

impl FailureLog {
    /// Records whether an operation failed. Returns whether that is news: another failure than before, or the end of
    /// one.
    pub fn is_news(&mut self, operation: &'static str, failure: Option<&str>) -> bool {
        match failure {
            None => self.0.remove(operation).is_some(),
            Some(cause) if self.0.get(operation).is_some_and(|known| known == cause) => false,
            Some(cause) => {
                self.0.insert(operation, cause.to_owned());
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_news_until_it_is_known_and_when_it_ends() {
        let mut failures = FailureLog::default();
        assert!(!failures.is_news("x", None));
        assert!(failures.is_news("x", Some("broken")));
        assert!(!failures.is_news("x", Some("broken")));
        assert!(failures.is_news("x", Some("gone")));
        assert!(!failures.is_news("y", None));
        assert!(failures.is_news("x", None));
        assert!(!failures.is_news("x", None));
    }
}
