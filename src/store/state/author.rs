//! Who changed the document, and through which call.

use std::fmt;

/// The author of a change, with the call that led to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// Who made the change.
    pub actor: Actor,
    /// The audit id of the call that led to the change.
    pub cause: Option<String>,
}

/// Who can change the document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Actor {
    /// gatewren itself, which observed the change on the host.
    Observer,
    /// The owner of the host.
    Owner,
    /// An AI client, by the id of its agent.
    Agent(String),
    /// A program on the host, by its name.
    Local(String),
}

impl Author {
    /// Returns gatewren itself as the author.
    pub fn observer() -> Self {
        Actor::Observer.into()
    }

    /// Returns the same author, with the call of this audit id as the cause.
    #[must_use]
    pub fn because(self, cause: impl Into<String>) -> Self {
        let cause = Some(cause.into());
        Self { cause, ..self }
    }
}

impl From<Actor> for Author {
    fn from(actor: Actor) -> Self {
        Self { actor, cause: None }
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Observer => f.write_str("observer"),
            Self::Owner => f.write_str("owner"),
            Self::Agent(id) => write!(f, "agent:{id}"),
            Self::Local(program) => write!(f, "local:{program}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authors_are_written_as_the_man_page_says() {
        let names: Vec<_> = [
            Actor::Observer,
            Actor::Owner,
            Actor::Agent("7".into()),
            Actor::Local("backup".into()),
        ]
        .iter()
        .map(ToString::to_string)
        .collect();
        assert_eq!(names, ["observer", "owner", "agent:7", "local:backup"]);
        assert_eq!(
            Author::observer().because("a1").cause.as_deref(),
            Some("a1")
        );
    }
}
