//! The reason that an agent gives for a call, for the person who decides on it.

use serde_json::{Map, Value};

use gatewren_base::sys::shorten;
use gatewren_wire::protocol::{Params, RpcError};
use gatewren_wire::registry::{REASON, Tool};

/// The maximum length of a reason in characters; longer ones are cut.
const MAX_CHARS: usize = 300;

/// Returns the reason of a call and removes it from the arguments, so that neither grants and approvals nor the tool
/// depend on it. A tool that has an argument of this name for itself keeps it, and checks it.
///
/// # Errors
/// If it is not a text.
pub(super) fn take_reason(
    tool: &Tool,
    arguments: &mut Map<String, Value>,
) -> Result<Option<String>, String> {
    let has_own = tool.has_argument(REASON);
    let given = if has_own {
        arguments.get(REASON).cloned()
    } else {
        arguments.remove(REASON)
    };
    let text = match given {
        Some(Value::String(text)) => text,
        None | Some(Value::Null) => return Ok(None),
        Some(_) if has_own => return Ok(None),
        Some(_) => return Err(format!("invalid arguments: {REASON} must be a text")),
    };
    let text = text.trim();
    Ok((!text.is_empty()).then(|| shorten(text, MAX_CHARS)))
}

/// Does the same for the parameters of a call.
pub(super) fn take_reason_of_call(
    tool: &Tool,
    params: &mut Params,
) -> Result<Option<String>, RpcError> {
    let arguments = params.get_mut("arguments").and_then(Value::as_object_mut);
    let reason = arguments.map_or(Ok(None), |arguments| take_reason(tool, arguments));
    reason.map_err(RpcError::invalid_params)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use schemars::JsonSchema;
    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use gatewren_wire::protocol::Implementation;
    use gatewren_wire::registry::{Answer, Catalog, Cx, Result, Risk, Toolset};

    /// Stops something.
    #[derive(Deserialize, JsonSchema)]
    struct Stop {}

    /// Restarts the server, and shows why.
    #[derive(Deserialize, JsonSchema)]
    struct Restart {
        /// Why.
        #[serde(rename = "reason")]
        _reason: String,
    }

    async fn stop(_: Arc<()>, _: Stop, _: Cx) -> Result<Answer> {
        Ok(Answer::text("stopped"))
    }

    async fn restart(_: Arc<()>, _: Restart, _: Cx) -> Result<Answer> {
        Ok(Answer::text("restarted"))
    }

    #[test]
    fn a_reason_is_no_argument_unless_the_tool_has_one_of_its_own() {
        let mut catalog = Catalog::new(Implementation {
            name: "t".into(),
            title: None,
            version: "1".into(),
            profile: None,
        });
        let tools = Toolset::new(Arc::new(()))
            .answering("stop", Risk::Disrupt, stop)
            .answering("restart", Risk::Disrupt, restart);
        catalog.add(tools).unwrap();
        let taken = |tool: &str, given: Value| {
            let mut arguments = json!({ "reason": given }).as_object().unwrap().clone();
            let reason = take_reason(catalog.tool(tool).unwrap(), &mut arguments);
            (reason, !arguments.is_empty())
        };
        let some = |text: &str| Ok(Some(text.to_owned()));
        assert_eq!(
            taken("stop", json!(" it hangs\n")),
            (some("it hangs"), false)
        );
        assert_eq!(taken("stop", json!("  ")), (Ok(None), false));
        assert_eq!(taken("stop", json!(null)), (Ok(None), false));
        assert!(taken("stop", json!(["x"])).0.is_err());
        assert_eq!(taken("restart", json!(1)), (Ok(None), true));
        assert_eq!(taken("restart", json!("updates")), (some("updates"), true));
        let (long, _) = taken("stop", json!("ä".repeat(301)));
        let long = long.unwrap().unwrap();
        assert!(
            long.chars().count() == MAX_CHARS && long.ends_with('…'),
            "{long}"
        );
    }
}
