//! How the work of a call ends.

use super::record::Record;
use crate::protocol::{InputRequired, RpcError, ToolResult};
use crate::registry::ProposedCall;

/// With a result, or without.
pub(super) type Ended = Result<ToolResult, Stop>;

/// How it ends without a result.
pub(super) enum Stop {
    /// With a question; the client calls again with the answers.
    Ask(InputRequired),
    /// With another call, which the owner is to decide on, and the record of this one.
    Propose(Box<(ProposedCall, Record)>),
    /// With an error of the protocol.
    Rpc(RpcError),
}
