//! The errors in settings: where they are and how to fix them.

use std::fmt;
use std::path::PathBuf;

pub use gatewren_portable::UnknownWord;

/// An error in a settings file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub file: PathBuf,
    /// The line, counted from 1, if the error belongs to one.
    pub line: Option<usize>,
    /// A sentence with the error and the fix.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
        }
        write!(f, " {}", self.message)
    }
}

/// Invalid settings. Displays every problem, one a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    problems: Vec<Problem>,
}

impl ConfigError {
    /// Returns an error with these problems, or `Ok` if there are none.
    pub(super) fn of(problems: Vec<Problem>) -> Result<(), Self> {
        if problems.is_empty() {
            Ok(())
        } else {
            Err(Self { problems })
        }
    }

    /// Returns the problems, in the order of the files.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Returns the first problem as one line, with the number of problems.
    pub fn summary(&self) -> String {
        let first = self.problems.first().map(Problem::to_string);
        let first = first.unwrap_or_default();
        match self.problems.len() {
            0 | 1 => first,
            count => format!("{first} (one of {count} problems; run `gatewren check` to see all)"),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}
