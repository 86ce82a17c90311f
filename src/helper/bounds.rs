//! What this box lets be done at all: the owner's file, which the front cannot write.

use crate::config::{HelperPolicy, HostShell};
use crate::exec::{Operation, RefusalCode};

use super::refusal::Refusal;

/// Refuses what the owner's file does not allow, whatever the front's policy says.
pub fn check(policy: &HelperPolicy, operation: &Operation) -> Result<(), Refusal> {
    match operation {
        Operation::HostCommand { .. } if policy.host_shell == HostShell::Off => forbidden(
            "commands on the host are off on this box; its owner can set host_shell = \"full\"",
        ),
        Operation::ContainerStart { .. } | Operation::ContainerStop { .. }
            if !policy.lxc_writes =>
        {
            forbidden(
                "containers are not started or stopped here; the box's owner can set lxc_writes = true",
            )
        }
        _ => Ok(()),
    }
}

fn forbidden(message: &str) -> Result<(), Refusal> {
    Err(Refusal::new(
        RefusalCode::Forbidden,
        format!("{message} in /etc/gatewren/helper.toml"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::{Command, Program};

    fn policy() -> HelperPolicy {
        HelperPolicy {
            host_shell: HostShell::Off,
            containers: vec!["arr-*".parse().unwrap()],
            lxc_writes: false,
        }
    }

    fn shell() -> Command {
        Command {
            program: Program::Shell("id".into()),
            user: None,
            cwd: None,
            env: std::collections::BTreeMap::new(),
        }
    }

    #[test]
    fn what_the_file_does_not_allow_is_refused() {
        let code = |operation| match check(&policy(), &operation) {
            Ok(()) => None,
            Err(refusal) => match crate::exec::Ending::from(refusal) {
                crate::exec::Ending::Refused { code, .. } => Some(code),
                _ => None,
            },
        };
        let inside = "arr-sonarr".parse().unwrap();
        assert_eq!(
            code(Operation::HostCommand { command: shell() }),
            Some(RefusalCode::Forbidden)
        );
        assert_eq!(
            code(Operation::ContainerStart { container: inside }),
            Some(RefusalCode::Forbidden)
        );
        assert_eq!(code(Operation::Ping {}), None);
        let defaults = HelperPolicy::default();
        assert_eq!(
            check(&defaults, &Operation::HostCommand { command: shell() }),
            Ok(())
        );
    }
}
