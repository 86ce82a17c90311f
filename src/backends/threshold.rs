//! The threshold that every question about a container crosses: what is beyond somebody's reach is not there.

use serde_json::{Map, Value};

use crate::config::{Reach, Traces};
use crate::helper_client::ContainerName;

use super::error::{BackendError, ErrorKind};

/// What of the containers there is for somebody.
///
/// A container beyond reach is asked about all the same, under a name that none has, and what is said of that
/// name is told of the one that was asked about. So the answer is the one for a container that does not exist:
/// the same words, after the same questions to the helper, which does the same work for them and whose owner's
/// file has the same say. In the helper's log stands the other name; the audit has the one that was asked about.
#[derive(Debug, Clone)]
pub struct Threshold(Reach);

impl Threshold {
    /// For who reaches so far.
    pub fn of(reach: &Reach) -> Self {
        Self(reach.clone())
    }

    /// Whether a container is within reach.
    pub fn shows(&self, name: &ContainerName) -> bool {
        self.0.container(name.as_str())
    }

    /// Whether a unit of systemd is, which may stand for a container.
    pub fn shows_unit(&self, name: &str) -> bool {
        self.0.unit(name)
    }

    /// Whether a text of the host says nothing of containers beyond reach.
    pub fn shows_text(&self, text: &str) -> bool {
        self.0.is_everything() || Traces::show(text, |name| self.0.container(name))
    }

    /// The same for a line of the host's journal, of a machine with this id.
    pub fn shows_line(&self, line: &Map<String, Value>, machine: &str) -> bool {
        self.0.is_everything() || Traces::show_line(line, machine, |name| self.0.container(name))
    }

    /// The name under which a container is asked about: its own, or one that none has.
    pub fn name(&self, name: &ContainerName) -> ContainerName {
        if self.shows(name) {
            name.clone()
        } else {
            ContainerName::of_none()
        }
    }

    /// For what is about the host.
    pub fn host(&self) -> Result<(), BackendError> {
        demand(self.0.host(), "the host is not within this agent's reach")
    }

    /// For what is about all of the box.
    pub fn everything(&self) -> Result<(), BackendError> {
        let words = "the whole box is not within this agent's reach";
        demand(self.0.is_everything(), words)
    }
}

/// What to tell of a container that was asked about as another: nothing was learnt of it but that there is none.
pub fn told<T>(
    name: &ContainerName,
    asked: &ContainerName,
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
