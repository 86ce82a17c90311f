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
    /// Where it runs, if it is not root's on the host: the user of a Podman, or the container of LXC around a Docker.
    pub place: Option<String>,
    /// Why it did not answer, in one sentence.
    pub why: String,
}

impl ContainerListing {
    /// Parses the helper's answer: a reference a line, and `!RUNTIME WHY` or `!RUNTIME@PLACE WHY` for a runtime that did
    /// not answer.
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

    /// Returns whether the runtime of a container did not answer.
    pub fn is_away(&self, container: &ContainerRef) -> bool {
        self.away.iter().any(|away| away.has(container))
    }
}

impl AwayRuntime {
    /// Returns whether it would list a container.
    pub fn has(&self, container: &ContainerRef) -> bool {
        // No Docker inside LXC could be asked.
        let is_in_all = self.runtime == RuntimeKind::DockerInLxc && self.place.is_none();
        self.runtime == container.runtime()
            && (is_in_all || self.place.as_deref() == container.place())
    }

    fn parse(text: &str) -> Option<Self> {
        let (runtime, why) = text.split_once(' ')?;
        let (runtime, place) = match runtime.split_once('@') {
            Some((runtime, place)) => (runtime, Some(place.to_owned())),
            None => (runtime, None),
        };
        Some(Self {
            runtime: runtime.parse().ok()?,
            place,
            why: why.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_names_the_runtimes_that_did_not_answer() {
        let text = "docker:web\nalpha\n!podman it is not running\n!podman@bob x\nx y\n!other x\n\nalpha\n\
                    !docker-in-lxc@media it is silent\n";
        let listing = ContainerListing::parse(text);
        let names: Vec<&str> = listing
            .containers
            .iter()
            .map(ContainerRef::as_str)
            .collect();
        assert_eq!(names, ["alpha", "docker:web"]);
        let is_away = |name: &str| listing.is_away(&name.parse().unwrap());
        assert!(is_away("podman:web") && is_away("podman:web@bob"));
        assert!(!is_away("podman:web@alice") && !is_away("docker:web"));
        for (name, expected) in [
            ("podman:web", true),
            ("docker:web", false),
            ("docker:web@media", true),
            ("docker:web@other", false),
            ("media", false),
        ] {
            assert_eq!(listing.is_away(&name.parse().unwrap()), expected, "{name}");
        }
        assert_eq!(listing.away[0].why, "it is not running");
    }
}
