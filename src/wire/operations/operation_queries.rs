//! Facts about an operation without running it, by the parts of its facts.

use super::container_ref::ContainerRef;
use super::operation::Operation;

impl Operation {
    /// The operation's name in the wire format and in the log.
    pub fn name(&self) -> &'static str {
        self.facts().name
    }

    /// Whether the operation is read-only.
    pub fn is_read_only(&self) -> bool {
        self.facts().is_read_only
    }

    /// Whether the operation runs a command that a client chose, while the caller waits.
    pub fn is_command(&self) -> bool {
        matches!(
            self,
            Self::HostCommand { .. } | Self::ContainerCommand { .. }
        )
    }

    /// The container that the operation is about, if any.
    pub fn container(&self) -> Option<&ContainerRef> {
        self.facts().container
    }
}
