//! The reason that an agent gives for a call, for the person who decides on it.

use serde_json::{Map, Value};

use gatewren_base::sys::shorten;
use gatewren_wire::protocol::Params;
use gatewren_wire::registry::{REASON, Tool};

/// The maximum length of a reason in characters; longer ones are cut.
const MAX_CHARS: usize = 300;

/// Returns the reason of a call and removes it from the arguments, so that neither grants and approvals nor the tool
/// depend on it. A tool that has an argument of this name for itself keeps it.
pub(super) fn take_reason(tool: &Tool, arguments: &mut Map<String, Value>) -> Option<String> {
    let given = arguments.get(REASON)?;
    let text = given
        .as_str()
        .map(str::trim)
        .filter(|text| !text.is_empty());
    let reason = text.map(|text| shorten(text, MAX_CHARS));
    if !tool.has_argument(REASON) {
        arguments.remove(REASON);
    }
    reason
}

/// Does the same for the parameters of a call.
pub(super) fn take_reason_of_call(tool: &Tool, params: &mut Params) -> Option<String> {
    take_reason(tool, params.get_mut("arguments")?.as_object_mut()?)
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
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            taken("stop", json!(" it hangs\n")),
            (some("it hangs"), false)
        );
        assert_eq!(taken("stop", json!("  ")), (None, false));
        assert_eq!(taken("stop", json!(["x"])), (None, false));
        assert_eq!(taken("restart", json!("updates")), (some("updates"), true));
        let (long, _) = taken("stop", json!("ä".repeat(301)));
        let long = long.unwrap();
        assert!(
            long.chars().count() == MAX_CHARS && long.ends_with('…'),
            "{long}"
        );
    }
}
