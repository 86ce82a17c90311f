//! Tools that announce a changed list.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::broadcast::Sender;

use crate::registry::{Answer, Cx, ListChange, Result, Risk, Toolset};

/// The channel for changes of lists.
pub struct Lists(Sender<ListChange>);

/// The toolset, as a table.
pub fn tools(lists: Sender<ListChange>) -> Toolset<Lists> {
    Toolset::over(Arc::new(Lists(lists)))
        .answering("test_trigger_tool_change", Risk::Read, tools_changed)
        .answering("test_trigger_prompt_change", Risk::Read, prompts_changed)
        .answering(
            "test_trigger_resource_change",
            Risk::Read,
            resources_changed,
        )
}

/// Announce to all subscribers that the list of tools has changed, without changing it.
#[derive(Deserialize, JsonSchema)]
struct ToolsChanged {}

async fn tools_changed(lists: Arc<Lists>, ToolsChanged {}: ToolsChanged, _: Cx) -> Result<Answer> {
    Ok(announce(&lists, ListChange::Tools))
}

/// Announce to all subscribers that the list of prompts has changed, without changing it.
#[derive(Deserialize, JsonSchema)]
struct PromptsChanged {}

async fn prompts_changed(
    lists: Arc<Lists>,
    PromptsChanged {}: PromptsChanged,
    _: Cx,
) -> Result<Answer> {
    Ok(announce(&lists, ListChange::Prompts))
}

/// Announce to all subscribers that the list of resources has changed, without changing it.
#[derive(Deserialize, JsonSchema)]
struct ResourcesChanged {}

async fn resources_changed(
    lists: Arc<Lists>,
    ResourcesChanged {}: ResourcesChanged,
    _: Cx,
) -> Result<Answer> {
    Ok(announce(&lists, ListChange::Resources))
}

fn announce(lists: &Lists, change: ListChange) -> Answer {
    // An error means that there are no subscribers.
    let heard = lists.0.send(change).unwrap_or(0);
    Answer::text(format!("Told {heard} listeners."))
}
