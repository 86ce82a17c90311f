//! Whether a program may run in a container that has more rights than its own.

use gatewren_base::config::{HelperClass, HelperPolicy};
use gatewren_wire::operations::{ContainerRef, OperationRefusal, RefusalCode};

use super::running_container::{CommandEntry, RunningContainer};

impl RunningContainer {
    /// Rejects what would run with the rights of the host's root, or of root in the container of LXC around it, unless the
    /// owner's policy allows that there and the front judged this so. `on_host` is the front's judgement.
    ///
    /// A command with the rights of the host's root needs the right to run commands on the host. One with the rights of
    /// root in the container of LXC around it needs access to that container, as a command in it would.
    pub fn check_host_rights(
        &self,
        container: &ContainerRef,
        policy: &HelperPolicy,
        on_host: bool,
    ) -> Result<(), OperationRefusal> {
        if let (Some(right), Some(outer)) = (self.lxc_rights.first(), container.outer()) {
            if policy.allows_container(outer.as_str()) && on_host {
                return Ok(());
            }
            let message = format!(
                "a program in container '{container}' has the rights of root in the LXC container '{outer}' ({right}), \
                 so it needs access to '{outer}'"
            );
            return Err(OperationRefusal::new(RefusalCode::Forbidden, message));
        }
        let Some(right) = self.host_rights.first() else {
            return Ok(());
        };
        let allowed = policy.allows(HelperClass::HostShell);
        if allowed && on_host {
            return Ok(());
        }
        let needs = if allowed {
            "it needs the right to run commands on the host"
        } else {
            "it needs host_shell in helper.toml"
        };
        let whose = match &self.entry {
            CommandEntry::UserPodman(of_user) => format!("user '{}'", of_user.user.name()),
            _ => "the host's root".to_owned(),
        };
        let message = format!(
            "a program in container '{container}' has the rights of {whose} ({right}), so {needs}"
        );
        Err(OperationRefusal::new(RefusalCode::Forbidden, message))
    }
}
