//! Messages to clients from outside of any call.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use super::resource::Viewer;
use crate::protocol::LogSeverity;

/// A list that has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListChange {
    /// The tools.
    Tools,
    /// The prompts.
    Prompts,
    /// The resources.
    Resources,
}

/// The clients that receive a message outside of any call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageAudience {
    /// One session, as named in [`Caller`](super::caller::Caller).
    Session(Arc<str>),
    /// The clients of an agent, by its id.
    Agent(Arc<str>),
    /// The clients of all agents.
    Everyone,
    /// The clients of agents that can see this container, by its reference.
    Container(Arc<str>),
    /// The clients of agents that can see the host.
    Host,
}

impl MessageAudience {
    /// Whether a client receives the message; `session` is empty for one without a session.
    pub fn includes(&self, session: &str, viewer: &Viewer) -> bool {
        match self {
            Self::Session(one) => **one == *session,
            Self::Agent(agent) => *agent == viewer.agent,
            Self::Everyone => true,
            Self::Container(name) => viewer.reach.container(name),
            Self::Host => viewer.reach.host(),
        }
    }
}

/// A message outside of any call.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionMessage {
    /// The clients that receive it.
    pub audience: MessageAudience,
    /// Its content.
    pub content: MessageContent,
}

/// The content of a message outside of any call.
#[derive(Debug, Clone, PartialEq)]
pub enum MessageContent {
    /// A log message, for clients with a session. The stateless revision has none: there a request gets only the messages
    /// of its own call.
    Log(SessionLog),
    /// A list that may have changed, for the clients that are notified of its changes.
    List(ListChange),
}

/// A log message outside of any call.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionLog {
    /// Its severity; a client that has asked for higher ones only does not get the message.
    pub level: LogSeverity,
    /// The component that logs.
    pub logger: Cow<'static, str>,
    /// The data that is logged.
    pub data: Value,
    /// Whether the owner sends it, so that clients that have not asked for any severity get it too. The specification lets
    /// the server decide for those.
    pub is_from_owner: bool,
}
