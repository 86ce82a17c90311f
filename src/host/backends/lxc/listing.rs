//! The list of containers, and the runtimes that could not be asked.

use gatewren_base::config::RuntimeKind;

use crate::helper_client::ContainerRef;

/// The mark before a runtime that did not answer.
const AWAY: char = '!';

/// The containers that exist.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContainerListing {
    /// Their references, sorted.
    pub containers: Vec<ContainerRef>,
    /// The runtimes whose containers are unknown now.
    pub away: Vec<AwayRuntime>,
}

/// A runtime that did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwayRuntime {
    /// The runtime.
    pub runtime: RuntimeKind,
    /// Why it did not answer, in one sentence.
    pub why: String,
}

impl ContainerListing {
    /// Parses the helper's answer: a reference a line, and `!RUNTIME WHY` for a runtime that did not answer.
    pub fn parse(text: &str) -> Self {
        let mut listing = Self::default();
        for line in text.lines() {
            match line.strip_prefix(AWAY) {
                Some(rest) => listing.away.extend(AwayRuntime::parse(rest)),
                None => listing
                    .containers
                    .extend(line.trim().parse::<ContainerRef>()),
            }
        }
        listing.containers.sort();
        listing.containers.dedup();
        listing
    }

    /// Returns whether a runtime did not answer.
    pub fn is_away(&self, runtime: RuntimeKind) -> bool {
        self.away.iter().any(|away| away.runtime == runtime)
    }
}

impl AwayRuntime {
    fn parse(text: &str) -> Option<Self> {
        let (runtime, why) = text.split_once(' ')?;
        let runtime = runtime.parse().ok()?;
        let why = why.to_owned();
        Some(Self { runtime, why })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_names_the_runtimes_that_did_not_answer() {
        let text = "docker:web\nalpha\n!podman it is not running\nx y\n!other x\n\nalpha\n";
        let listing = ContainerListing::parse(text);
        let names: Vec<&str> = listing
            .containers
            .iter()
            .map(ContainerRef::as_str)
            .collect();
        assert_eq!(names, ["alpha", "docker:web"]);
        assert!(listing.is_away(RuntimeKind::Podman) && !listing.is_away(RuntimeKind::Docker));
        assert_eq!(listing.away[0].why, "it is not running");
    }
}
