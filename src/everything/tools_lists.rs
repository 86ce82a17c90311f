//! Tools that announce a changed list.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::broadcast::Sender;

use crate::registry::{Answer, Cx, ListChange, Result, Risk, Toolset};

/// Where changes of lists are announced.
pub struct Lists(Sender<ListChange>);

/// The group, as a table.
pub fn tools(lists: Sender<ListChange>) -> Toolset<Lists> {
    Toolset::over(Arc::new(Lists(lists)))
        .answering("test_trigger_tool_change", Risk::Read, tools_changed)
        .answering("test_trigger_prompt_change", Risk::Read, prompts_changed)
}

/// Tells everybody who listens that the list of tools has changed. It stays as it is.
#[derive(Deserialize, JsonSchema)]
struct ToolsChanged {}

async fn tools_changed(lists: Arc<Lists>, ToolsChanged {}: ToolsChanged, _: Cx) -> Result<Answer> {
    Ok(announce(&lists, ListChange::Tools))
}

/// Tells everybody who listens that the list of prompts has changed. It stays as it is.
#[derive(Deserialize, JsonSchema)]
struct PromptsChanged {}

async fn prompts_changed(
    lists: Arc<Lists>,
    PromptsChanged {}: PromptsChanged,
    _: Cx,
) -> Result<Answer> {
    Ok(announce(&lists, ListChange::Prompts))
}

fn announce(lists: &Lists, change: ListChange) -> Answer {
    // An error only says that nobody listens.
    let heard = lists.0.send(change).unwrap_or(0);
    Answer::text(format!("Told {heard} listeners."))
}
