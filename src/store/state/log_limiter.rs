//! Logs failures of the database file once, until they change.

use tracing::{error, info};

use super::error::StateError;

/// The current failure of the file, if any.
#[derive(Debug)]
pub struct DatabaseFailure {
    doing: &'static str,
    present: Option<StateError>,
}

impl DatabaseFailure {
    /// Creates a log for this kind of access; no failure so far.
    pub fn with(doing: &'static str) -> Self {
        Self {
            doing,
            present: None,
        }
    }

    /// Records an outcome. A failure that was already logged is not logged again.
    pub fn note<T>(&mut self, outcome: &Result<T, StateError>) {
        let doing = self.doing;
        match outcome {
            Ok(_) => {
                if self.present.take().is_some() {
                    info!(doing, "the state database works again");
                }
            }
            // A rejected patch is no failure of the file.
            Err(cause) => {
                if cause.is_of_the_file() && self.present.as_ref() != Some(cause) {
                    error!(doing, %cause, "an operation on the state database failed");
                    self.present = Some(cause.clone());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::patch::PatchError;
    use super::*;

    #[test]
    fn a_failure_is_present_until_it_works_again() {
        let mut trouble = DatabaseFailure::with("test");
        let full = || Err::<(), _>(StateError::Full("/state.db".into()));
        trouble.note(&full());
        trouble.note(&full());
        assert_eq!(trouble.present, full().err());
        trouble.note(&Err::<(), _>(PatchError::NotAList.into()));
        assert_eq!(trouble.present, full().err());
        trouble.note(&Ok(()));
        assert_eq!(trouble.present, None);
        trouble.note(&Err::<(), _>(PatchError::NotAList.into()));
        assert_eq!(trouble.present, None);
    }
}
