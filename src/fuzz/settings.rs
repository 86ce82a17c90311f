//! The settings files: accepted ones can be written and read again, rejected ones are reported with place and
//! reason.

use super::input::text;
use gatewren_base::config::{HelperPolicy, Settings};

/// Input: the text of `gatewren.toml` and of `helper.toml`.
pub fn are_read_or_explained(data: &[u8]) {
    let Some(text) = text(data) else { return };
    match Settings::from_text(text) {
        Ok(settings) => {
            let written = settings.to_text();
            let again = Settings::from_text(&written);
            assert_eq!(again.as_ref(), Ok(&settings), "{written}");
        }
        Err(error) => {
            let lines = text.split('\n').count();
            assert!(!error.problems().is_empty());
            for problem in error.problems() {
                assert!(!problem.message.is_empty());
                // One line each, and no control characters for a terminal.
                assert!(!problem.message.contains(char::is_control), "{problem}");
                assert!(
                    problem.line.is_none_or(|line| (1..=lines).contains(&line)),
                    "{problem}"
                );
            }
        }
    }
    if let Ok(policy) = HelperPolicy::from_text(text) {
        let written = policy.to_text();
        assert_eq!(
            HelperPolicy::from_text(&written).as_ref(),
            Ok(&policy),
            "{written}"
        );
    }
}
