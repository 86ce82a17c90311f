//! The four presets for an agent's permissions.

use std::fmt;
use std::str::FromStr;

use super::error::UnknownWord;

/// The base of an agent's permissions, before overrides; from the fewest to the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Preset {
    /// Reads only.
    Observe,
    /// Reads, and proposes changes for the owner to decide.
    Suggest,
    /// Makes reversible changes, and proposes the rest.
    Operate,
    /// Does everything. Calls that cut access or reveal secrets need a confirmation.
    Admin,
}

impl Preset {
    /// All presets, from the fewest permissions to the most.
    pub const ALL: [Self; 4] = [Self::Observe, Self::Suggest, Self::Operate, Self::Admin];

    /// Returns the word for it in settings, on the command line and in the vault.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Observe => "observe",
            Self::Suggest => "suggest",
            Self::Operate => "operate",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Preset {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        let known = Self::ALL.into_iter().find(|preset| preset.as_str() == word);
        known.ok_or_else(|| UnknownWord::new(word, &Self::ALL.map(Self::as_str)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_read_as_it_is_written() {
        for preset in Preset::ALL {
            assert_eq!(preset.to_string().parse(), Ok(preset));
        }
        let error = "root".parse::<Preset>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "\"root\" is not one of observe, suggest, operate, admin"
        );
    }

    #[test]
    fn presets_are_ordered_by_what_they_allow() {
        assert!(Preset::ALL.is_sorted());
    }
}
