//! Log messages about a call, for a client that asks for them: the called tool, and how the call ended.

use std::time::Instant;

use serde_json::json;

use super::call::ToolRequest;
use gatewren_wire::protocol::LogSeverity;
use gatewren_wire::registry::{Answer, Cx, Interruption, LogOffer};

/// The name of the logger in each message.
const LOGGER: &str = "gatewren.calls";

/// The maximum length of an error in a message, in characters; the rest is cut, and the answer has all of it.
const MAX_ERROR_CHARS: usize = 300;

/// A call whose client asked for log messages.
pub(super) struct CallLog {
    cx: Cx,
    tool: String,
    begun: Instant,
}

impl CallLog {
    /// Logs the begin of a call with severity `debug`; `None` if its client wants no messages, or receives none from
    /// this server.
    pub async fn begin(offer: LogOffer, request: &ToolRequest) -> Option<Self> {
        let is_session = request.cx.caller().session.is_some();
        if offer != LogOffer::Sessions || !is_session || !request.cx.wants_logs() {
            return None;
        }
        let log = Self {
            cx: request.cx.clone(),
            tool: request.tool.name().to_owned(),
            begun: Instant::now(),
        };
        let data = json!({ "tool": log.tool, "request": log.cx.reference(), "message": "The call began." });
        log.cx.log(LogSeverity::Debug, LOGGER, &data).await;
        Some(log)
    }

    /// Logs the end of the call: severity `debug` if it succeeded, `error` if it failed, `notice` if the client or the
    /// owner has to decide something first.
    pub async fn end(self, answer: &Result<(Answer, Option<u64>), Interruption>) {
        let (level, message) = match answer {
            Ok((answer, _)) if answer.failed => (LogSeverity::Error, "The call failed.".to_owned()),
            Ok(_) => (LogSeverity::Debug, "The call succeeded.".to_owned()),
            Err(Interruption::Failed(error)) => (
                LogSeverity::Error,
                error.message.chars().take(MAX_ERROR_CHARS).collect(),
            ),
            Err(Interruption::Rpc(_)) => (LogSeverity::Error, "The call was refused.".to_owned()),
            Err(Interruption::Ask(_) | Interruption::Propose(_)) => (
                LogSeverity::Notice,
                "The call waits for a decision.".to_owned(),
            ),
        };
        let took = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let data = json!({
            "tool": self.tool,
            "request": self.cx.reference(),
            "duration_ms": took,
            "message": message,
        });
        self.cx.log(level, LOGGER, &data).await;
    }
}
