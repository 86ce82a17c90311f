//! The names of containers beyond somebody's reach, so that free text with one of them in it is not told.

use std::time::Duration;

use crate::helper_client::{ContainerName, Helper, Operation};

use super::ask::ask;
use super::error::{BackendError, ErrorKind};
use super::threshold::Threshold;

/// How long the question for the names may take.
const QUESTION_TIME: Duration = Duration::from_secs(20);

/// Names that nothing has in it that is told.
#[derive(Debug, Default)]
pub struct Elsewhere {
    /// Whether there may be anything that is not for the caller.
    bounded: bool,
    names: Vec<String>,
}

impl Elsewhere {
    /// What is beyond reach now; nothing for who reaches the whole box. A box on which no containers can be listed
    /// because it has no LXC has none.
    ///
    /// # Errors
    /// When the names cannot be had: then nothing can be told.
    pub async fn of(
        helper: &Helper,
        threshold: &Threshold,
        reference: &str,
    ) -> Result<Self, BackendError> {
        if threshold.everything().is_ok() {
            return Ok(Self::default());
        }
        let list = Operation::ContainerList {};
        let listed = match ask(helper, list, QUESTION_TIME, reference).await {
            Ok(names) => names,
            Err(error) if error.kind == ErrorKind::Unavailable && !error.retry => String::new(),
            Err(error) => return Err(error),
        };
        let is_elsewhere = |name: &&str| {
            let name: Result<ContainerName, _> = name.parse();
            name.is_ok_and(|name| !threshold.shows(&name))
        };
        let names = listed.split_whitespace().filter(is_elsewhere);
        Ok(Self {
            bounded: true,
            names: names.map(str::to_owned).collect(),
        })
    }

    /// Whether there may be anything that is not for the caller.
    pub fn is_bounded(&self) -> bool {
        self.bounded
    }

    /// Whether one of the names stands in a text.
    pub fn is_in(&self, text: &str) -> bool {
        self.names.iter().any(|name| has_word(text, name))
    }

    #[cfg(test)]
    pub fn with(name: &str) -> Self {
        Self {
            bounded: true,
            names: vec![name.to_owned()],
        }
    }
}

/// Whether a name stands in a text with nothing before and behind it that could be part of it.
fn has_word(text: &str, name: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric();
    text.match_indices(name).any(|(at, _)| {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        let behind = text.get(at + name.len()..);
        let behind = behind.and_then(|text| text.chars().next());
        !before.is_some_and(part) && !behind.is_some_and(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_as_a_word_alone() {
        let elsewhere = Elsewhere::with("vault");
        for (text, is_there) in [
            ("[lxc monitor] /var/lib/lxc vault", true),
            ("lxc-vault_</var/lib/lxc>", true),
            ("vault", true),
            ("vaulted ceilings", false),
            ("devault, vault.", true),
            ("", false),
        ] {
            assert_eq!(elsewhere.is_in(text), is_there, "{text}");
        }
        assert!(!Elsewhere::default().is_in("vault"));
    }
}
