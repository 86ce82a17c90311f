//! The types of a call and its reply, the same for every method and every revision.

use std::any::Any;
use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::sync::{Notify, mpsc};

use super::listing::Listing;
use gatewren_gate::auth::Principal;
use gatewren_wire::protocol::{
    ClientCapabilities, InputAnswers, InputRequired, LogSeverity, Notification, Params, ReadResult,
    RequestId, RpcError, ToolResult,
};
use gatewren_wire::registry::{BoxFuture, Cx, Tool, Viewer};

/// The caller, its address, and the capabilities of its client.
#[derive(Debug, Clone)]
pub struct CallContext {
    /// The calling agent.
    pub who: Principal,
    /// The client's IP address; `None` if the connection is not over a network.
    pub address: Option<IpAddr>,
    /// The client's session, in the stateful revisions.
    pub session: Option<Arc<str>>,
    /// The capabilities that the client declared.
    pub capabilities: ClientCapabilities,
    /// The lowest severity of log messages that the client wants.
    pub log_level: Option<LogSeverity>,
    /// Whether the client can receive notifications while the call runs.
    pub accepts_notifications: bool,
    /// Notified by a call that wants its client to reconnect later; `None` if the client could not.
    pub disconnect: Option<Arc<Notify>>,
    /// The id that the client gave its HTTP request. It is logged and never replaces the reference of a call: an agent
    /// could otherwise choose the reference of another call.
    pub client_request: Option<Arc<String>>,
}

impl CallContext {
    /// A context with only the sender set.
    pub fn of(who: Principal, address: Option<IpAddr>) -> Self {
        Self {
            who,
            address,
            session: None,
            capabilities: ClientCapabilities::default(),
            log_level: None,
            accepts_notifications: false,
            disconnect: None,
            client_request: None,
        }
    }

    /// The agent, as a viewer of resources.
    pub(super) fn viewer(&self) -> Viewer {
        viewer(&self.who)
    }
}

/// Returns the viewer for an agent.
pub(super) fn viewer(who: &Principal) -> Viewer {
    Viewer {
        agent: who.agent_id().shared(),
        reach: who.reach().clone(),
    }
}

/// A resource that is held until the call ends, even if its client disconnects.
pub type HeldResource = Arc<dyn Any + Send + Sync>;

/// A call.
#[derive(Debug)]
pub struct Call {
    /// The request's id.
    pub id: RequestId,
    /// The method.
    pub method: Cow<'static, str>,
    /// The parameters.
    pub params: Params,
    /// The caller and its client.
    pub context: CallContext,
    /// Answers that the stateful adapter has collected; `None` if they are in the parameters.
    pub inputs: Option<InputAnswers>,
    /// The call's slot in the agent's limit of concurrent calls.
    pub held: Option<HeldResource>,
}

impl Call {
    /// The call of an approved change or of a schedule: on behalf of the agent, without a connected client.
    pub(super) fn unattended(who: &Principal) -> Self {
        Self {
            id: RequestId::Number(0),
            method: "tools/call".into(),
            params: Params::default(),
            context: CallContext::of(who.clone(), None),
            inputs: None,
            held: None,
        }
    }
}

/// The tool that a call runs, with its arguments and its context.
pub(super) struct ToolRequest {
    /// The tool.
    pub tool: Arc<Tool>,
    /// Its arguments.
    pub arguments: Map<String, Value>,
    /// The reason that the agent gave.
    pub reason: Option<String>,
    /// The context for its function.
    pub cx: Cx,
}

/// The outcome of a successful call.
#[derive(Debug)]
pub enum CallOutcome {
    /// A result.
    Complete(Value),
    /// The result of a tool.
    Called(ToolResult),
    /// The contents of a resource.
    Read(ReadResult),
    /// A list that is already serialized.
    Listed(Arc<Listing>),
    /// A question to the client, and the sealed state that the client returns with the answers.
    Ask(InputRequired, Option<String>),
}

/// The notifications of a running call, and its outcome. Dropping it ends the call, as far as the tool's class
/// allows.
pub struct CallReply {
    /// The call's notifications; `None` if it sends none or the client cannot receive them.
    pub notes: Option<mpsc::Receiver<Notification>>,
    /// The outcome.
    pub outcome: BoxFuture<Result<CallOutcome, RpcError>>,
}

impl CallReply {
    /// Creates a reply with an outcome that is already known.
    pub fn ready(outcome: Result<CallOutcome, RpcError>) -> Self {
        Self {
            notes: None,
            outcome: Box::pin(std::future::ready(outcome)),
        }
    }
}
