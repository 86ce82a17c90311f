//! The containers, and the units that belong to them, that the helper's policy gives access to.

use super::helper_policy::HelperPolicy;
use super::space::{OF_ALL_CONTAINERS, container_of_unit};

impl HelperPolicy {
    /// Returns whether a container may be accessed.
    pub fn allows_container(&self, name: &str) -> bool {
        self.containers.iter().any(|glob| glob.matches(name))
    }

    /// Returns whether changing a unit affects no container without access. Some units belong to one container,
    /// some to all.
    pub fn allows_unit(&self, name: &str) -> bool {
        if let Some(container) = container_of_unit(name) {
            return self.lxc_writes && self.allows_container(&container);
        }
        !OF_ALL_CONTAINERS.contains(&name) || self.lxc_writes && self.allows_all_containers()
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
    fn a_unit_is_no_way_around_the_containers_that_are_allowed() {
        let some = HelperPolicy {
            containers: vec!["web".parse().unwrap()],
            ..HelperPolicy::default()
        };
        assert!(some.allows_unit("lxc@web.service") && some.allows_unit("ssh.service"));
        for other in ["lxc@vault.service", "lxc.service", "lxcfs.service"] {
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
