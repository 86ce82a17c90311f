//! A text that never prints itself, and is overwritten when it is dropped.

use std::fmt;

use ring::digest::{SHA256, digest};
use serde::Deserialize;
pub use zeroize::{ZeroizeOnDrop, Zeroizing};

/// A password, token or key: readable only through [`Secret::expose`].
///
/// It has no `Serialize`, and `Debug` and `Display` write `[secret]`, so that it reaches no log, no response and no
/// database by accident. Dropping it overwrites its bytes.
#[derive(Clone, Default, Deserialize, ZeroizeOnDrop)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl PartialEq for Secret {
    /// Compares digests, so that the time taken does not reveal how many characters agree.
    fn eq(&self, other: &Self) -> bool {
        let ours = digest(&SHA256, self.0.as_bytes());
        let theirs = digest(&SHA256, other.0.as_bytes());
        let differing = ours
            .as_ref()
            .iter()
            .zip(theirs.as_ref())
            .fold(0, |bits, (a, b)| bits | (a ^ b));
        std::hint::black_box(differing) == 0
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_shows_itself_only_when_asked() {
        let secret = Secret::new("hunter2");
        assert_eq!(
            format!("{secret} {secret:?} {secret:#?}"),
            "[secret] [secret] [secret]"
        );
        assert_eq!(secret.expose(), "hunter2");
    }

    #[test]
    fn its_bytes_are_overwritten_when_it_is_dropped() {
        fn assert_wiped<T: ZeroizeOnDrop>() {}
        assert_wiped::<Secret>();
    }

    #[test]
    fn equality_is_of_the_whole_text() {
        let secret = Secret::new("hunter2");
        assert_eq!(secret, Secret::new("hunter2"));
        for other in ["", "hunter", "hunter22", "Hunter2"] {
            assert_ne!(secret, Secret::new(other));
        }
    }
}
