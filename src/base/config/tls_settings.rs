//! The settings of the certificate.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use super::error::UnknownWord;

/// The source of the certificate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TlsMode {
    /// Our own certificate authority, stored in the state directory.
    #[default]
    Own,
    /// The two configured files.
    Files,
}

/// The certificate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsSettings {
    /// Its source.
    pub mode: TlsMode,
    /// The chain as PEM, leaf first. Set if and only if the mode is `Files`.
    pub cert: Option<PathBuf>,
    /// The private key as PEM. Set if and only if the mode is `Files`.
    pub key: Option<PathBuf>,
}

impl fmt::Display for TlsMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Own => "own",
            Self::Files => "files",
        })
    }
}

impl FromStr for TlsMode {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        match word {
            "own" => Ok(Self::Own),
            "files" => Ok(Self::Files),
            _ => Err(UnknownWord::new(word, &["own", "files"])),
        }
    }
}
