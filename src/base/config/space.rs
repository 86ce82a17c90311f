//! Spaces: named parts of the host, and what an agent can access.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::glob::Glob;

/// The name of the space with the host and all containers.
pub const WHOLE_SERVER: &str = "*";

/// A named part of the host as configured: `[spaces.media]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Space {
    /// The containers in it.
    pub containers: Vec<Glob>,
    /// Whether the host itself is in it.
    pub host: bool,
}

/// Units of the host that every container depends on, or every container of one runtime.
pub(super) const OF_ALL_CONTAINERS: [&str; 13] = [
    "containerd.service",
    "docker.service",
    "docker.socket",
    "lxc-monitord.service",
    "lxc-net.service",
    "lxc.service",
    "lxcfs.service",
    "pve-cluster.service",
    "pve-guests.service",
    "podman-auto-update.service",
    "podman-restart.service",
    "podman.service",
    "podman.socket",
];

/// Returns whether a unit is the scope of one container of Docker or Podman. It names the container by its id.
pub(super) fn is_engine_scope(name: &str) -> bool {
    let is_of_engine = name.starts_with("docker-") || name.starts_with("libpod-");
    is_of_engine && name.strip_suffix(".scope").is_some()
}

/// All spaces, by name.
pub type Spaces = BTreeMap<String, Space>;

/// What an agent can access: its space, narrowed by its policy. Cheap to clone. The default is no access.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reach(Option<Arc<Bounds>>);

#[derive(Debug, PartialEq, Eq)]
struct Bounds {
    /// A container is accessible if it matches a pattern of each list.
    containers: Vec<Vec<Glob>>,
    host: bool,
}

impl Reach {
    /// Access to the host and all containers.
    pub fn everything() -> Self {
        Self(Some(Arc::new(Bounds {
            containers: Vec::new(),
            host: true,
        })))
    }

    /// Access to the contents of a space.
    pub fn of(space: &Space) -> Self {
        Self(Some(Arc::new(Bounds {
            containers: vec![space.containers.clone()],
            host: space.host,
        })))
    }

    /// Narrows the access to containers that also match one of these patterns.
    #[must_use]
    pub fn narrow_to(&self, containers: &[Glob]) -> Self {
        Self(self.0.as_ref().map(|bounds| {
            let mut lists = bounds.containers.clone();
            lists.push(containers.to_vec());
            Arc::new(Bounds {
                containers: lists,
                host: bounds.host,
            })
        }))
    }

    /// Returns whether a container is accessible, by its reference.
    pub fn container(&self, name: &str) -> bool {
        let fits = |list: &Vec<Glob>| list.iter().any(|glob| glob.matches_container(name));
        self.0
            .as_ref()
            .is_some_and(|b| b.containers.iter().all(fits))
    }

    /// Returns whether the host is accessible.
    pub fn host(&self) -> bool {
        self.0.as_ref().is_some_and(|bounds| bounds.host)
    }

    /// Returns whether a systemd unit of the host belongs to no inaccessible container. The units that LXC and
    /// Proxmox VE make for each container contain its name, the scopes of Docker and Podman an id: these are accessible
    /// to those who can access all containers.
    pub fn unit(&self, name: &str) -> bool {
        if is_engine_scope(name) {
            return self.is_everything();
        }
        container_of_unit(name).is_none_or(|container| self.container(&container))
    }

    /// Returns whether a path of the host belongs to no inaccessible container. A directory `lxc` has a
    /// subdirectory for each container.
    pub fn path(&self, path: &str) -> bool {
        let mut parts = path.split('/').skip_while(|part| *part != "lxc");
        let container = parts.nth(1).filter(|part| !part.is_empty());
        container.is_none_or(|container| self.container(container))
    }

    /// Returns whether everything is accessible: the host and all containers, of any name.
    pub fn is_everything(&self) -> bool {
        self.0
            .as_ref()
            .is_some_and(|bounds| bounds.host && bounds.containers.is_empty())
    }
}

/// Returns whether a systemd unit of the host belongs to no container.
pub fn is_host_unit(name: &str) -> bool {
    !is_engine_scope(name) && container_of_unit(name).is_none()
}

/// Returns the container that a unit is made for, such as `web` for `lxc@web.service`.
pub(super) fn container_of_unit(name: &str) -> Option<String> {
    const TEMPLATES: [&str; 3] = ["lxc", "pve-container", "pve-container-debug"];
    let (template, rest) = name.split_once('@')?;
    let (instance, _) = rest.rsplit_once('.')?;
    let is_one = TEMPLATES.contains(&template) && !instance.is_empty();
    is_one.then(|| unescaped(instance))
}

/// Reverses `systemd-escape`: `\x2d` stands for a byte. Anything else stays unchanged.
fn unescaped(instance: &str) -> String {
    let mut pieces = instance.split("\\x");
    let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        let code = piece
            .get(..2)
            .and_then(|code| u8::from_str_radix(code, 16).ok());
        match (code, piece.get(2..)) {
            (Some(byte), Some(rest)) => {
                bytes.push(byte);
                bytes.extend(rest.bytes());
            }
            _ => bytes.extend([b"\\x", piece.as_bytes()].concat()),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
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
        let narrow = reach.narrow_to(&globs(&["*-sonarr"]));
        assert!(narrow.container("arr-sonarr") && !narrow.container("jellyfin"));
        assert!(!reach.narrow_to(&[]).container("jellyfin"));
    }

    #[test]
    fn a_pattern_without_a_runtime_is_about_the_names_in_all() {
        let cases = [
            ("*", "web", true),
            ("*", "docker:web", true),
            ("arr-*", "docker:arr-sonarr", true),
            ("docker:arr-*", "docker:arr-sonarr", true),
            ("docker:arr-*", "arr-sonarr", false),
            ("docker:arr-*", "podman:arr-sonarr", false),
            ("docker:*", "docker:web", true),
            ("docker*", "docker:web", false),
            ("lxc:web", "web", true),
            ("lxc:web", "docker:web", false),
            ("*:web", "podman:web", true),
            ("*:web", "web", true),
            ("web", "docker:webs", false),
        ];
        for (pattern, reference, is_in) in cases {
            let reach = Reach::of(&Space {
                containers: globs(&[pattern]),
                host: false,
            });
            assert_eq!(reach.container(reference), is_in, "{pattern} {reference}");
        }
    }

    #[test]
    fn what_is_named_after_a_container_is_there_with_it() {
        let reach = Reach::of(&Space {
            containers: globs(&["web", "my-db"]),
            host: true,
        });
        for (unit, is_there) in [
            ("ssh.service", true),
            ("lxc.service", true),
            ("lxc@.service", true),
            ("getty@tty1.service", true),
            ("lxc@web.service", true),
            ("lxc@my\\x2ddb.service", true),
            ("lxc@other.service", false),
            ("lxc@my\\x2ddb2.service", false),
            ("lxc@web\\x.service", false),
            ("pve-container@101.service", false),
            ("docker-4e5f.scope", false),
            ("libpod-4e5f.scope", false),
            ("docker-cleanup.service", true),
            ("session-1.scope", true),
        ] {
            assert_eq!(reach.unit(unit), is_there, "{unit}");
        }
        for (path, is_there) in [
            ("/", true),
            ("/var/lib/lxc", true),
            ("/var/lib/lxc/", true),
            ("/var/lib/lxc/web/rootfs", true),
            ("/var/lib/lxc/other", false),
            ("/srv/lxc/other/rootfs", false),
            ("/srv/other", true),
        ] {
            assert_eq!(reach.path(path), is_there, "{path}");
        }
        let all = Reach::everything();
        assert!(all.unit("docker-4e5f.scope"));
        assert!(all.unit("lxc@other.service") && all.path("/var/lib/lxc/other"));
    }

    #[test]
    fn by_default_there_is_nothing() {
        let nothing = Reach::default();
        assert!(!nothing.host() && !nothing.container("a") && !nothing.is_everything());
        assert!(!nothing.narrow_to(&globs(&["*"])).container("a"));
        let all = Reach::everything();
        assert!(all.host() && all.container("a") && all.is_everything());
        assert!(!all.narrow_to(&globs(&["*"])).is_everything());
    }
}
