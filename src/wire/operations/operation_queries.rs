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

    /// The container that the operation is about, if any.
    pub fn container(&self) -> Option<&ContainerRef> {
        self.facts().container
    }
}
