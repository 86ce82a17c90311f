//! What is wrong with the settings, where, and what to do about it.

use std::fmt;
use std::path::PathBuf;

/// One thing to mend in a settings file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file it stands in.
    pub file: PathBuf,
    /// The line, counted from 1, where it stands on one.
    pub line: Option<usize>,
    /// A sentence: what is wrong and what would be right.
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

/// The settings cannot be used; every problem found, one a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    problems: Vec<Problem>,
}

impl ConfigError {
    /// An error of these problems, or none when there are none.
    pub(super) fn of(problems: Vec<Problem>) -> Result<(), Self> {
        if problems.is_empty() {
            Ok(())
        } else {
            Err(Self { problems })
        }
    }

    /// What to mend, in the order of the files.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The first thing to mend on one line, and how many there are.
    pub fn shortly(&self) -> String {
        let first = self.problems.first().map(Problem::to_string);
        let first = first.unwrap_or_default();
        match self.problems.len() {
            0 | 1 => first,
            count => format!("{first} (one of {count} problems, which `gatewren check` shows)"),
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

/// A word that is none of the known ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownWord {
    word: String,
    known: String,
}

impl UnknownWord {
    pub(super) fn new(word: &str, known: &[&str]) -> Self {
        Self {
            word: word.to_owned(),
            known: known.join(", "),
        }
    }

    /// The words that would have been right, separated by commas.
    pub(super) fn known(&self) -> &str {
        &self.known
    }
}

impl fmt::Display for UnknownWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\" is not one of {}", self.word, self.known)
    }
}

impl std::error::Error for UnknownWord {}
