//! The first tool of the list, by its name: callable by anybody, without arguments, changing nothing.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::registry::{Answer, Cx, Result, Risk, Toolset};

/// It stands on nothing.
pub struct Fixtures;

/// The group, as a table.
pub fn tools() -> Toolset<Fixtures> {
    Toolset::over(Arc::new(Fixtures)).answering("about", Risk::Read, about)
}

/// Says what this server is for. Whoever tries out a server calls its first tool: it may be called with
/// nothing, by any client, as often as one likes.
#[derive(Deserialize, JsonSchema)]
struct About {}

async fn about(_: Arc<Fixtures>, About {}: About, _: Cx) -> Result<Answer> {
    Ok(Answer::text(
        "Fixtures for testing MCP clients; every tool shows one feature of the protocol.",
    ))
}
