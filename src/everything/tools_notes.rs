//! Tools that send messages before their result: progress, log messages, and a request to reconnect later.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::time::sleep;

use crate::protocol::Level;
use crate::registry::{Answer, Cx, Result, Risk, Toolset};

/// The pause between two messages, so that a client receives them one by one.
const PAUSE: Duration = Duration::from_millis(50);

/// These tools have no state.
pub struct Notes;

/// The toolset, as a table.
pub fn tools() -> Toolset<Notes> {
    Toolset::over(Arc::new(Notes))
        .answering("test_tool_with_progress", Risk::Read, progress)
        .answering("test_tool_with_logging", Risk::Read, logging)
        .answering("test_logging_tool", Risk::Read, every_level)
        .answering("test_reconnection", Risk::Read, reconnection)
}

/// Report progress 0, 50 and 100 of 100, then return.
#[derive(Deserialize, JsonSchema)]
struct Progress {}

async fn progress(_: Arc<Notes>, Progress {}: Progress, cx: Cx) -> Result<Answer> {
    for done in [0.0, 50.0, 100.0] {
        let words = format!("Completed step {done} of 100");
        cx.progress(done, Some(100.0), Some(&words)).await;
        sleep(PAUSE).await;
    }
    Ok(Answer::text("Progress was reported three times."))
}

/// Log three messages of severity info, then return.
#[derive(Deserialize, JsonSchema)]
struct Logging {}

async fn logging(_: Arc<Notes>, Logging {}: Logging, cx: Cx) -> Result<Answer> {
    for words in [
        "Tool execution started",
        "Tool processing data",
        "Tool execution completed",
    ] {
        cx.log(Level::Info, "test_tool_with_logging", &json!(words))
            .await;
        sleep(PAUSE).await;
    }
    Ok(Answer::text("Three messages were logged."))
}

/// Log one message of each severity; a client receives those that it asked for, and none if it did not ask.
#[derive(Deserialize, JsonSchema)]
struct EveryLevel {}

async fn every_level(_: Arc<Notes>, EveryLevel {}: EveryLevel, cx: Cx) -> Result<Answer> {
    for level in Level::ALL {
        cx.log(level, "test_logging_tool", &json!("A message for testing"))
            .await;
    }
    Ok(Answer::text("One message of each severity was logged."))
}

/// Close the stream of the response before the result: the client reconnects for the result. If a client cannot
/// reconnect, return the result as usual.
#[derive(Deserialize, JsonSchema)]
struct Reconnection {}

async fn reconnection(_: Arc<Notes>, Reconnection {}: Reconnection, cx: Cx) -> Result<Answer> {
    cx.close_stream();
    sleep(PAUSE).await;
    Ok(Answer::text("The stream was closed before this answer."))
}
