//! The error for a word that is not among the known words.

use std::fmt;

/// A word that is not among the known words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownWord {
    word: String,
    known: String,
}

impl UnknownWord {
    /// Creates the error for a word.
    pub fn new(word: &str, known: &[&str]) -> Self {
        Self {
            word: word.to_owned(),
            known: known.join(", "),
        }
    }

    /// Returns the known words, separated by commas.
    pub fn known_words(&self) -> &str {
        &self.known
    }
}

impl fmt::Display for UnknownWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\" is not one of {}", self.word, self.known)
    }
}

impl std::error::Error for UnknownWord {}
