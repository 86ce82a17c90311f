//! Spaces: named parts of the box, and how far an agent reaches.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::glob::Glob;

/// The name that stands for the whole box.
pub const WHOLE_BOX: &str = "*";

/// A named part of the box, as the settings have it: `[spaces.media]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Space {
    /// The containers in it.
    pub containers: Vec<Glob>,
    /// Whether the host is in it.
    pub host: bool,
}

/// Every space, by its name.
pub type Spaces = BTreeMap<String, Space>;

/// What of the box there is for an agent: its space, narrowed by its policy. Cheap to clone; by default nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reach(Option<Arc<Bounds>>);

#[derive(Debug, PartialEq, Eq)]
struct Bounds {
    /// A container is within reach that fits one pattern of each list.
    containers: Vec<Vec<Glob>>,
    host: bool,
}

impl Reach {
    /// The whole box.
    pub fn everything() -> Self {
        Self(Some(Arc::new(Bounds {
            containers: Vec::new(),
            host: true,
        })))
    }

    /// What is in a space.
    pub fn of(space: &Space) -> Self {
        Self(Some(Arc::new(Bounds {
            containers: vec![space.containers.clone()],
            host: space.host,
        })))
    }

    /// The same with those containers only that fit one of these patterns too.
    #[must_use]
    pub fn narrowed(&self, containers: &[Glob]) -> Self {
        Self(self.0.as_ref().map(|bounds| {
            let mut lists = bounds.containers.clone();
            lists.push(containers.to_vec());
            Arc::new(Bounds {
                containers: lists,
                host: bounds.host,
            })
        }))
    }

    /// Whether a container is there.
    pub fn container(&self, name: &str) -> bool {
        let fits = |list: &Vec<Glob>| list.iter().any(|glob| glob.matches(name));
        self.0
            .as_ref()
            .is_some_and(|b| b.containers.iter().all(fits))
    }

    /// Whether the host is there.
    pub fn host(&self) -> bool {
        self.0.as_ref().is_some_and(|bounds| bounds.host)
    }

    /// Whether the whole box is there: the host and every container, whatever its name.
    pub fn is_everything(&self) -> bool {
        self.0
            .as_ref()
            .is_some_and(|bounds| bounds.host && bounds.containers.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn globs(patterns: &[&str]) -> Vec<Glob> {
        patterns.iter().map(|p| p.parse().unwrap()).collect()
    }

    #[test]
    fn a_reach_is_a_space_narrowed_by_a_policy() {
        let space = Space {
            containers: globs(&["jellyfin", "arr-*"]),
            host: false,
        };
        let reach = Reach::of(&space);
        assert!(reach.container("jellyfin") && reach.container("arr-sonarr"));
        assert!(!reach.container("db") && !reach.host() && !reach.is_everything());
        let narrow = reach.narrowed(&globs(&["*-sonarr"]));
        assert!(narrow.container("arr-sonarr") && !narrow.container("jellyfin"));
        assert!(!reach.narrowed(&[]).container("jellyfin"));
    }

    #[test]
    fn by_default_there_is_nothing() {
        let nothing = Reach::default();
        assert!(!nothing.host() && !nothing.container("a") && !nothing.is_everything());
        assert!(!nothing.narrowed(&globs(&["*"])).container("a"));
        let all = Reach::everything();
        assert!(all.host() && all.container("a") && all.is_everything());
        assert!(!all.narrowed(&globs(&["*"])).is_everything());
    }
}
