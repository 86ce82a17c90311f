//! The values of keys of the helper's policy file that are words.

use std::fmt;
use std::str::FromStr;

use super::error::UnknownWord;

/// Whether commands may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShellPolicy {
    /// Not allowed.
    Off,
    /// Any command may run, as root.
    Full,
}

/// A setting that is either off or on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// Not allowed.
    Off,
    /// Allowed.
    On,
}

/// The allowed operations on package updates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpdatesPolicy {
    /// None.
    Off,
    /// Listing them.
    ReadOnly,
    /// Listing and installing them.
    Apply,
}

/// The allowed operations on backups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackupPolicy {
    /// None.
    Off,
    /// Creating, verifying and restoring them.
    On,
    /// Deleting them too.
    Delete,
}

/// Implements `Display` and `FromStr` for the values of a key.
macro_rules! words {
    ($kind:ty, $($word:literal = $value:path),+) => {
        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $($value => $word),+ })
            }
        }

        impl FromStr for $kind {
            type Err = UnknownWord;

            fn from_str(word: &str) -> Result<Self, UnknownWord> {
                match word {
                    $($word => Ok($value),)+
                    _ => Err(UnknownWord::new(word, &[$($word),+])),
                }
            }
        }
    };
}

words!(ShellPolicy, "off" = Self::Off, "full" = Self::Full);
words!(Switch, "off" = Self::Off, "on" = Self::On);
words!(
    BackupPolicy,
    "off" = Self::Off,
    "on" = Self::On,
    "delete" = Self::Delete
);
words!(
    UpdatesPolicy,
    "off" = Self::Off,
    "read-only" = Self::ReadOnly,
    "apply" = Self::Apply
);
