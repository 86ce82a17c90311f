//! What of the box a tool is about: an agent that is kept in a space sees only tools that keep to it.

use crate::config::Reach;

/// What of the box a tool is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// The whole box, or nobody said: only for agents that reach everything.
    #[default]
    Box,
    /// The host: for agents that reach it.
    Host,
    /// The container that this argument names; without the argument, those within reach.
    Container(&'static str),
    /// The container that this argument names; without the argument, the host.
    HostOr(&'static str),
    /// Whatever is within the caller's reach, to which the tool keeps by itself.
    Within,
}

impl Scope {
    /// Whether a tool of this scope exists for an agent that reaches so far.
    pub fn is_within(self, reach: &Reach) -> bool {
        match self {
            Self::Box => reach.is_everything(),
            Self::Host => reach.host(),
            Self::Container(_) | Self::HostOr(_) | Self::Within => true,
        }
    }
}
