//! The containers, and the units that belong to them, that the helper's policy gives access to.

use std::path::Path;

use super::glob::{Glob, fits};
use super::helper_policy::HelperPolicy;
use super::runtime_kind::RuntimeKind;
use super::space::{OF_ALL_CONTAINERS, container_of_unit, is_engine_scope};

impl HelperPolicy {
    /// Returns whether a container may be accessed: its runtime is served in its place, and its reference is in the
    /// list.
    pub fn allows_container(&self, reference: &str) -> bool {
        let listed = |glob: &Glob| glob.matches_container(reference);
        let place = reference.split_once('@').map(|(_, place)| place);
        let has_place = place.is_some();
        let runtime = match reference.split_once(':') {
            Some((prefix, _)) => RuntimeKind::of_prefix(prefix, has_place),
            None => Some(RuntimeKind::Lxc).filter(|_| !has_place),
        };
        let is_served = match (runtime, place) {
            (Some(RuntimeKind::Podman), Some(user)) => self.serves_podman_of(user),
            (Some(runtime), _) => self.serves(runtime),
            (None, _) => false,
        };
        is_served && self.containers.iter().any(listed)
    }

    /// Returns whether some container of the Docker inside this container of LXC may be accessed.
    pub fn may_allow_inside(&self, outer: &str) -> bool {
        let mut globs = self.containers.iter();
        let is_inside = |glob: &Glob| {
            let glob = glob.to_string();
            glob.split_once('@')
                .is_some_and(|(_, place)| fits(place, outer))
        };
        self.serves(RuntimeKind::DockerInLxc)
            && globs.any(|glob| glob.matches_container(outer) || is_inside(glob))
    }

    /// Returns whether a runtime's containers are served. Docker inside LXC is served only where LXC is.
    pub fn serves(&self, runtime: RuntimeKind) -> bool {
        let is_named = |kind: &RuntimeKind| self.runtimes.contains(kind);
        is_named(&runtime) && runtime.needs().as_ref().is_none_or(is_named)
    }

    /// Returns whether the own Podman of a user is served.
    pub fn serves_podman_of(&self, user: &str) -> bool {
        self.podman_users.iter().any(|served| served == user)
    }

    /// Stops serving Docker and Podman where their sockets do not exist: for a trial, which serves what it finds.
    pub fn leave_out_missing_engines(&mut self) {
        let sockets = [
            (RuntimeKind::Docker, self.docker_socket.clone()),
            (RuntimeKind::Podman, self.podman_socket.clone()),
        ];
        for (runtime, socket) in sockets {
            if !socket.exists() {
                self.runtimes.retain(|served| *served != runtime);
            }
        }
    }

    /// Returns the socket of a runtime that has one.
    pub fn socket(&self, runtime: RuntimeKind) -> Option<&Path> {
        match runtime {
            RuntimeKind::Lxc | RuntimeKind::DockerInLxc => None,
            RuntimeKind::Docker => Some(&self.docker_socket),
            RuntimeKind::Podman => Some(&self.podman_socket),
        }
    }

    /// Returns whether changing a unit affects no container without access. Some units belong to one container,
    /// some to all.
    pub fn allows_unit(&self, name: &str) -> bool {
        if let Some(container) = container_of_unit(name) {
            return self.lxc_writes && self.allows_container(&container);
        }
        let is_of_all = OF_ALL_CONTAINERS.contains(&name) || is_engine_scope(name);
        !is_of_all || self.lxc_writes && self.allows_all_containers()
    }

    /// Returns whether all information of the host about containers may be shown.
    pub fn shows_all_containers(&self) -> bool {
        self.lxc_reads && self.allows_all_containers()
    }

    /// Returns whether information of the host about a container may be shown.
    pub fn shows_container(&self, name: &str) -> bool {
        self.lxc_reads && self.allows_container(name)
    }

    fn allows_all_containers(&self) -> bool {
        self.containers.iter().any(|glob| glob.to_string() == "*")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_of_a_runtime_that_is_not_served_is_not_there() {
        let only = |runtimes: &[RuntimeKind]| HelperPolicy {
            runtimes: runtimes.to_vec(),
            ..HelperPolicy::default()
        };
        let usual = HelperPolicy::default();
        assert!(usual.allows_container("web") && !usual.allows_container("docker:web"));
        let docker = only(&[RuntimeKind::Docker]);
        assert!(docker.allows_container("docker:web") && !docker.allows_container("web"));
        assert!(!docker.allows_container("podman:web") && !docker.allows_container("x:web"));
        assert!(!docker.allows_container("docker:web@media"));
        let of_alice = HelperPolicy {
            podman_users: vec!["alice".to_owned()],
            ..HelperPolicy::default()
        };
        assert!(of_alice.allows_container("podman:web@alice"));
        for other in ["podman:web", "podman:web@bob", "docker:web@alice"] {
            assert!(!of_alice.allows_container(other), "{other}");
        }
        let some = HelperPolicy {
            containers: vec!["web".parse().unwrap()],
            ..of_alice
        };
        assert!(!some.allows_container("podman:web@alice"));
        let inner = only(&[RuntimeKind::Lxc, RuntimeKind::DockerInLxc]);
        assert!(inner.allows_container("docker:web@media") && inner.allows_container("media"));
        assert!(
            !inner.allows_container("docker:web") && !inner.allows_container("podman:web@media")
        );
        assert!(
            !inner.allows_container("web@media") && !inner.allows_container("docker-in-lxc:web")
        );
        assert!(!only(&[RuntimeKind::DockerInLxc]).allows_container("docker:web@media"));
        let some = HelperPolicy {
            containers: vec!["docker:web@media".parse().unwrap()],
            ..inner
        };
        assert!(some.allows_container("docker:web@media"));
        assert!(!some.allows_container("media") && !some.allows_container("docker:db@media"));
        assert!(some.may_allow_inside("media") && !some.may_allow_inside("web"));
        assert!(!only(&[]).allows_container("web"));
    }

    #[test]
    fn a_unit_is_no_way_around_the_containers_that_are_allowed() {
        let some = HelperPolicy {
            containers: vec!["web".parse().unwrap()],
            ..HelperPolicy::default()
        };
        assert!(some.allows_unit("lxc@web.service") && some.allows_unit("ssh.service"));
        for other in [
            "lxc@vault.service",
            "lxc.service",
            "lxcfs.service",
            "docker.service",
            "containerd.service",
            "docker-4e5f.scope",
            "libpod-4e5f.scope",
        ] {
            assert!(!some.allows_unit(other), "{other}");
            assert!(HelperPolicy::default().allows_unit(other), "{other}");
        }
        let none = HelperPolicy {
            lxc_writes: false,
            ..HelperPolicy::default()
        };
        assert!(!none.allows_unit("lxc@web.service") && !none.allows_unit("lxc.service"));
    }
}
