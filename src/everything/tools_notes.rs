//! Tools that say something on the way: progress, log messages, and that their client may come back later.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::time::sleep;

use crate::protocol::Level;
use crate::registry::{Answer, Cx, Result, Risk, Toolset};

/// What stands between two notes, so that a client sees them come one by one.
const PAUSE: Duration = Duration::from_millis(50);

/// Notes stand on nothing.
pub struct Notes;

/// The group, as a table.
pub fn tools() -> Toolset<Notes> {
    Toolset::over(Arc::new(Notes))
        .answering("test_tool_with_progress", Risk::Read, progress)
        .answering("test_tool_with_logging", Risk::Read, logging)
        .answering("test_logging_tool", Risk::Read, every_level)
        .answering("test_reconnection", Risk::Read, reconnection)
}

/// Reports progress 0, 50 and 100 of 100, then ends.
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

/// Logs three messages of severity info, then ends.
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

/// Logs one message of each severity; a client hears those that it asked for, and none if it did not ask.
#[derive(Deserialize, JsonSchema)]
struct EveryLevel {}

async fn every_level(_: Arc<Notes>, EveryLevel {}: EveryLevel, cx: Cx) -> Result<Answer> {
    for level in Level::ALL {
        cx.log(level, "test_logging_tool", &json!("A message for testing"))
            .await;
    }
    Ok(Answer::text("One message of each severity was logged."))
}

/// Closes the stream of its response before it answers: the client comes back for the answer. Where a client
/// cannot come back, it just answers.
#[derive(Deserialize, JsonSchema)]
struct Reconnection {}

async fn reconnection(_: Arc<Notes>, Reconnection {}: Reconnection, cx: Cx) -> Result<Answer> {
    cx.close_stream();
    sleep(PAUSE).await;
    Ok(Answer::text("The stream was closed before this answer."))
}
