//! What this box lets be done at all: the owner's file, which the front cannot write.

use crate::config::{HelperPolicy, Shell};
use crate::exec::{Operation, RefusalCode};

use super::refusal::Refusal;

/// Refuses what the owner's file does not allow, whatever the front's policy says.
pub fn check(policy: &HelperPolicy, operation: &Operation) -> Result<(), Refusal> {
    match class(operation) {
        Some(class) if !class.is_on(policy) => Err(Refusal::new(
            RefusalCode::Forbidden,
            format!("{} in /etc/gatewren/helper.toml", class.obstacle()),
        )),
        _ => Ok(()),
    }
}

/// What the owner's file switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    HostShell,
    ContainerShell,
    LxcReads,
    LxcWrites,
}

/// An operation's class; none for what does nothing. Each operation is named, so that none can be forgotten.
fn class(operation: &Operation) -> Option<Class> {
    match operation {
        // What every user of the machine may know, or nearly.
        Operation::Ping {}
        | Operation::HostView {}
        | Operation::HostSpace { .. }
        | Operation::HostPrograms { .. } => None,
        Operation::HostCommand { .. } => Some(Class::HostShell),
        Operation::ContainerCommand { .. } => Some(Class::ContainerShell),
        Operation::ContainerList {}
        | Operation::ContainerInfo { .. }
        | Operation::ContainerConfig { .. }
        | Operation::ContainerOsRelease { .. }
        | Operation::ContainerVitals { .. }
        | Operation::ContainerDisk { .. }
        | Operation::ContainerEvents {} => Some(Class::LxcReads),
        Operation::ContainerStart { .. } | Operation::ContainerStop { .. } => {
            Some(Class::LxcWrites)
        }
    }
}

impl Class {
    fn is_on(self, policy: &HelperPolicy) -> bool {
        match self {
            Self::HostShell => policy.host_shell == Shell::Full,
            Self::ContainerShell => policy.container_shell == Shell::Full,
            Self::LxcReads => policy.lxc_reads,
            Self::LxcWrites => policy.lxc_writes,
        }
    }

    fn obstacle(self) -> &'static str {
        match self {
            Self::HostShell => {
                "commands on the host are off on this box; its owner can set host_shell = \"full\""
            }
            Self::ContainerShell => {
                "commands in containers are off on this box; its owner can set container_shell = \"full\""
            }
            Self::LxcReads => {
                "containers are not looked at here; the box's owner can set lxc_reads = true"
            }
            Self::LxcWrites => {
                "containers are not started or stopped here; the box's owner can set lxc_writes = true"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::{Command, ContainerName, Ending, Program};

    fn everything() -> Vec<(Operation, Option<Class>)> {
        let container = || -> ContainerName { "web".parse().unwrap() };
        let command = || Command {
            program: Program::Shell("id".into()),
            user: None,
            cwd: None,
            env: std::collections::BTreeMap::new(),
        };
        let one = |container| Operation::ContainerCommand {
            container,
            command: command(),
        };
        let reads = [
            Operation::ContainerList {},
            Operation::ContainerInfo {
                container: container(),
            },
            Operation::ContainerConfig {
                container: container(),
            },
            Operation::ContainerOsRelease {
                container: container(),
            },
            Operation::ContainerVitals { container: None },
            Operation::ContainerDisk {
                container: container(),
            },
            Operation::ContainerEvents {},
        ];
        let writes = [
            Operation::ContainerStart {
                container: container(),
            },
            Operation::ContainerStop {
                container: container(),
                grace_s: 1,
            },
        ];
        let rest = [
            (Operation::Ping {}, None),
            (Operation::HostView {}, None),
            (Operation::HostSpace { places: Vec::new() }, None),
            (
                Operation::HostPrograms {
                    sockets: Vec::new(),
                },
                None,
            ),
            (
                Operation::HostCommand { command: command() },
                Some(Class::HostShell),
            ),
            (one(container()), Some(Class::ContainerShell)),
        ];
        let reads = reads.map(|read| (read, Some(Class::LxcReads)));
        let writes = writes.map(|write| (write, Some(Class::LxcWrites)));
        rest.into_iter().chain(reads).chain(writes).collect()
    }

    #[test]
    fn each_class_is_switched_by_its_own_word_and_by_no_other() {
        let full = HelperPolicy::default;
        let switches = [
            (
                Class::HostShell,
                HelperPolicy {
                    host_shell: Shell::Off,
                    ..full()
                },
            ),
            (
                Class::ContainerShell,
                HelperPolicy {
                    container_shell: Shell::Off,
                    ..full()
                },
            ),
            (
                Class::LxcReads,
                HelperPolicy {
                    lxc_reads: false,
                    ..full()
                },
            ),
            (
                Class::LxcWrites,
                HelperPolicy {
                    lxc_writes: false,
                    ..full()
                },
            ),
        ];
        for (operation, class) in everything() {
            assert_eq!(check(&full(), &operation), Ok(()), "{operation:?}");
            for (off, policy) in &switches {
                let refused = check(policy, &operation).is_err();
                assert_eq!(
                    refused,
                    class == Some(*off),
                    "{operation:?} without {off:?}"
                );
            }
        }
    }

    #[test]
    fn a_refusal_names_the_file_and_the_word_to_set() {
        for (class, word) in [
            (Class::HostShell, "host_shell = \"full\""),
            (Class::ContainerShell, "container_shell = \"full\""),
            (Class::LxcReads, "lxc_reads = true"),
            (Class::LxcWrites, "lxc_writes = true"),
        ] {
            assert!(class.obstacle().ends_with(word));
        }
        let off = HelperPolicy {
            lxc_reads: false,
            ..HelperPolicy::default()
        };
        let refused = check(&off, &Operation::ContainerList {}).unwrap_err();
        let Ending::Refused { code, message } = refused.into() else {
            panic!("a refusal is an ending");
        };
        assert_eq!(code, RefusalCode::Forbidden);
        assert!(
            message.ends_with("in /etc/gatewren/helper.toml"),
            "{message}"
        );
    }
}
