//! The names under which tools are listed.

use std::fmt;
use std::str::FromStr;

use super::error::UnknownWord;

/// The naming scheme of tools and resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// Our own names, which every client accepts.
    #[default]
    Portable,
    /// The names and parameters of `StartOS`, for tools that exist there.
    StartOs,
}

impl Dialect {
    const ALL: [Self; 2] = [Self::Portable, Self::StartOs];

    fn as_str(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::StartOs => "startos",
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Dialect {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        let known = Self::ALL
            .into_iter()
            .find(|dialect| dialect.as_str() == word);
        known.ok_or_else(|| UnknownWord::new(word, &Self::ALL.map(Self::as_str)))
    }
}
