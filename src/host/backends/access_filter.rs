//! Access checks for queries about containers: an inaccessible container looks like a missing one.

use serde_json::{Map, Value};

use crate::helper_client::ContainerRef;
use gatewren_base::config::{ContainerMentions, Reach};

use super::error::{BackendError, ErrorKind};

/// A caller's access to containers.
///
/// A query about an inaccessible container is still sent to the helper, but under a name that no
/// container has. The requested name is then restored in the answer. So the answer is the one for a
/// missing container: the same message, after the same operations of the helper, with the same
/// checks of the owner's file. The helper's log has the substituted name, the audit the requested
/// one.
#[derive(Debug, Clone)]
pub struct AccessFilter(Reach);

impl AccessFilter {
    /// Returns the access of a caller with this reach.
    pub fn of(reach: &Reach) -> Self {
        Self(reach.clone())
    }

    /// Whether the caller may access a container.
    pub fn shows(&self, name: &ContainerRef) -> bool {
        self.0.container(name.as_str())
    }

    /// Whether the caller may see a systemd unit, which may belong to a container.
    pub fn shows_unit(&self, name: &str) -> bool {
        self.0.unit(name)
    }

    /// Whether a text of the host mentions no inaccessible container.
    pub fn shows_text(&self, text: &str) -> bool {
        self.0.is_everything() || ContainerMentions::show(text, |name| self.0.container(name))
    }

    /// The same for a line of the host's journal; `machine` is the host's id.
    pub fn shows_line(&self, line: &Map<String, Value>, machine: &str) -> bool {
        self.0.is_everything()
            || ContainerMentions::show_line(line, machine, |name| self.0.container(name))
    }

    /// Returns the name under which a container is queried: its own, or one that no container has.
    pub fn name(&self, name: &ContainerRef) -> ContainerRef {
        if self.shows(name) {
            name.clone()
        } else {
            name.of_none()
        }
    }

    /// Checks access to the host.
    pub fn host(&self) -> Result<(), BackendError> {
        demand(self.0.host(), "the host is not within this agent's reach")
    }

    /// Checks access to everything on the host.
    pub fn everything(&self) -> Result<(), BackendError> {
        let words = "the whole server is not within this agent's reach";
        demand(self.0.is_everything(), words)
    }
}

/// Restores the requested name in an error of a query under another name; the only fact learnt is
/// that it does not exist.
pub fn unmask_error<T>(
    name: &ContainerRef,
    asked: &ContainerRef,
    answer: Result<T, BackendError>,
) -> Result<T, BackendError> {
    answer.map_err(|error| BackendError {
        message: error.message.replace(asked.as_str(), name.as_str()),
        ..error
    })
}

fn demand(granted: bool, words: &str) -> Result<(), BackendError> {
    granted
        .then_some(())
        .ok_or_else(|| BackendError::new(ErrorKind::Refused, words))
}
