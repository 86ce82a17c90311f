//! Which containers, and which units that stand for them, the root helper's file lets be touched and known.

use super::helper_policy::HelperPolicy;
use super::space::{OF_ALL_CONTAINERS, container_of_unit};

impl HelperPolicy {
    /// Whether a container may be seen and touched.
    pub fn allows_container(&self, name: &str) -> bool {
        self.containers.iter().any(|glob| glob.matches(name))
    }

    /// Whether a unit of systemd touches no container that may not be touched: some stand for one, some for all.
    pub fn allows_unit(&self, name: &str) -> bool {
        if let Some(container) = container_of_unit(name) {
            return self.lxc_writes && self.allows_container(&container);
        }
        !OF_ALL_CONTAINERS.contains(&name) || self.lxc_writes && self.allows_all_containers()
    }

    /// Whether everything that the host says of containers may be told, whichever they are.
    pub fn shows_all_containers(&self) -> bool {
        self.lxc_reads && self.allows_all_containers()
    }

    /// Whether what the host says of a container may be told.
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
