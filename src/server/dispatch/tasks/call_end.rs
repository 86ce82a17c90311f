//! The end of a call's work.

use crate::dispatch::record::Record;
use gatewren_wire::protocol::{InputRequired, RpcError, ToolResult};
use gatewren_wire::registry::ProposedCall;

/// The end of the work, with a result or without one.
pub(in crate::dispatch) type CallEnd = Result<ToolResult, StopReason>;

/// The reason why the work ended without a result.
pub(in crate::dispatch) enum StopReason {
    /// A question; the client calls again with the answers.
    Ask(InputRequired),
    /// The work proposes another call, for the owner to decide on. The record is that of the proposing call.
    Propose(Box<(ProposedCall, Record)>),
    /// A protocol error.
    Rpc(RpcError),
}
