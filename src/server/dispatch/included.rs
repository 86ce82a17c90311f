//! Whether the answer of a call may contain that of another tool.

use serde_json::Map;

use super::engine::Engine;
use gatewren_gate::auth::Principal;
use gatewren_gate::policy::{Verdict, judge};
use gatewren_wire::registry::{Cx, Tool};

/// Adds to the context of a call whether the caller may call, now and without being asked, the tool that `tool` includes.
pub(super) fn with_included(cx: Cx, engine: &Engine, who: &Principal, tool: &Tool) -> Cx {
    let Some(other) = tool.includes() else {
        return cx;
    };
    let other = engine.catalog.tool(other);
    let may_call = other.is_some_and(|other| {
        let verdict = judge(who, other, &Map::new());
        engine.catalog.has(other) && matches!(verdict, Verdict::Allow(_) | Verdict::Granted(_))
    });
    cx.with_included(may_call)
}
