//! The scope of a tool: the part of the host that it is about, which decides whether an agent in a space sees it.

use gatewren_base::config::Reach;

/// The part of the host that a tool is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// The whole host, or not declared: only for agents that can reach everything.
    #[default]
    Server,
    /// The host itself: for agents that can reach it.
    Host,
    /// The container that this argument names; without the argument, all containers within reach.
    Container(&'static str),
    /// The stack that this argument names: all containers of a Compose project. The tool enforces that the caller
    /// reaches all of them.
    Stack(&'static str),
    /// The container that this argument names; without the argument, the host.
    HostOr(&'static str),
    /// Everything within the caller's reach; the tool enforces this itself.
    Within,
}

impl Scope {
    /// Returns the argument that names the target.
    pub fn argument(self) -> Option<&'static str> {
        match self {
            Self::Container(argument) | Self::Stack(argument) | Self::HostOr(argument) => {
                Some(argument)
            }
            Self::Server | Self::Host | Self::Within => None,
        }
    }

    /// Whether a tool of this scope exists for an agent with this reach.
    pub fn is_within(self, reach: &Reach) -> bool {
        match self {
            Self::Server => reach.is_everything(),
            Self::Host => reach.host(),
            Self::Container(_) | Self::Stack(_) | Self::HostOr(_) | Self::Within => true,
        }
    }
}
