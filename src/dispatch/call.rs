//! A call as it arrives and a reply as it leaves, the same for every method and every revision.

use std::any::Any;
use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::{Notify, mpsc};

use super::listing::Listing;
use crate::auth::Principal;
use crate::protocol::{
    ClientCapabilities, Id, InputRequired, Inputs, Level, Notification, Params, ReadResult,
    RpcError, ToolResult,
};
use crate::registry::{BoxFuture, Viewer};

/// Who calls, from where, and what the client can do.
#[derive(Debug, Clone)]
pub struct Context {
    /// The agent.
    pub who: Principal,
    /// Its address; none where no network lies between.
    pub address: Option<IpAddr>,
    /// Its session, in the stateful revisions.
    pub session: Option<Arc<str>>,
    /// What the client can do.
    pub capabilities: ClientCapabilities,
    /// From which severity on it wants log messages.
    pub log_level: Option<Level>,
    /// Whether notifications can reach it while the call runs.
    pub hears_notes: bool,
    /// Rung by a call that wants its client to come back later; absent where a client could not.
    pub hang_up: Option<Arc<Notify>>,
}

impl Context {
    /// Of a sender of whom nothing else is known yet.
    pub fn of(who: Principal, address: Option<IpAddr>) -> Self {
        Self {
            who,
            address,
            session: None,
            capabilities: ClientCapabilities::default(),
            log_level: None,
            hears_notes: false,
            hang_up: None,
        }
    }

    /// The agent as who looks at resources.
    pub(super) fn viewer(&self) -> Viewer {
        viewer(&self.who)
    }
}

/// An agent as who looks at resources.
pub(super) fn viewer(who: &Principal) -> Viewer {
    Viewer {
        agent: who.agent_id().shared(),
        reach: who.reach().clone(),
    }
}

/// Something that is held for as long as a call runs, whatever becomes of its client.
pub type Held = Arc<dyn Any + Send + Sync>;

/// One call.
#[derive(Debug)]
pub struct Call {
    /// The request's id.
    pub id: Id,
    /// The method.
    pub method: Cow<'static, str>,
    /// Its parameters.
    pub params: Params,
    /// Its surroundings.
    pub context: Context,
    /// Answers that the stateful adapter has gathered itself; otherwise they stand in the parameters.
    pub inputs: Option<Inputs>,
    /// Its place among the agent's calls.
    pub held: Option<Held>,
}

/// How a call ends well.
#[derive(Debug)]
pub enum Outcome {
    /// With a result.
    Complete(Value),
    /// With that of a tool.
    Called(ToolResult),
    /// With what was read.
    Read(ReadResult),
    /// With a list that was written before.
    Listed(Arc<Listing>),
    /// With a question; the text is the sealed state that comes back with the answers.
    Ask(InputRequired, Option<String>),
}

/// Notifications while it runs, one outcome at the end. Dropping it ends the call, as far as its class allows.
pub struct Reply {
    /// What it tells on the way; absent when it has nothing to tell or nobody would hear.
    pub notes: Option<mpsc::Receiver<Notification>>,
    /// The end.
    pub outcome: BoxFuture<Result<Outcome, RpcError>>,
}

impl Reply {
    /// A reply that is ready.
    pub fn ready(outcome: Result<Outcome, RpcError>) -> Self {
        Self {
            notes: None,
            outcome: Box::pin(std::future::ready(outcome)),
        }
    }
}
