//! Arguments of tools: accepted exactly if they fit the schema in the tool list.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value};
use tokio::sync::watch;

use super::input::{parts, text};
use gatewren_host::backends::{HelperCapabilities, Lxc, Shell};
use gatewren_host::helper_client::HelperClient;
use gatewren_tools::toolsets::{self, AccessSources, AgentLimits};
use gatewren_wire::registry::Tool;

/// Tools that need no state to be listed; none of them is run.
static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(|| {
    let nobody = || HelperClient::connect_to(PathBuf::from("/nonexistent/helper.sock"));
    let (_, stop) = watch::channel(false);
    let lxc = toolsets::containers(Arc::new(Lxc::new(nobody())));
    let shell = toolsets::shell(Arc::new(Shell::new(nobody(), stop)));
    let sources = AccessSources {
        bounds: HelperCapabilities::unknown(),
        limits: Box::new(|| AgentLimits {
            calls_per_minute: 1,
            concurrent_calls: 1,
            open_changes: 1,
        }),
        open_changes: Box::new(|_| None),
    };
    let mut tools = toolsets::access(Arc::new(sources)).into_tools();
    tools.extend(lxc.into_tools());
    tools.extend(shell.into_tools());
    tools
});

/// First part: a tool's name; second part: its arguments.
pub fn fit_the_schema(data: &[u8]) {
    let [name, arguments] = parts(data);
    let tool = TOOLS.iter().find(|tool| Some(tool.name()) == text(name));
    let arguments = serde_json::from_slice::<Map<String, Value>>(arguments);
    let (Some(tool), Ok(mut arguments)) = (tool, arguments) else {
        return;
    };
    // Some clients add it to every call, against the schema.
    arguments.remove("toolCallId");
    let schema = &tool.definition().input_schema;
    let taken = tool.check_arguments(arguments.clone()).is_ok();
    let fits = |arguments: &Map<String, Value>| fits(&Value::Object(arguments.clone()), schema);
    if fits(&arguments) {
        assert!(taken, "{name:?} is listed as taking {arguments:?}");
    } else if taken {
        // Null means absent, where a value may be absent.
        arguments.retain(|_, value| !value.is_null());
        assert!(fits(&arguments), "{name:?} takes {arguments:?}");
    }
}

/// JSON Schema 2020-12, limited to the keywords of our schemas; a new keyword has to be added here.
fn fits(value: &Value, schema: &Value) -> bool {
    let Value::Object(keywords) = schema else {
        return schema != &Value::Bool(false);
    };
    keywords
        .iter()
        .all(|(keyword, rule)| match keyword.as_str() {
            "description" | "default" => true,
            "type" => is_a(value, rule),
            "properties" => each(value, |name, inner| {
                rule.get(name).is_none_or(|schema| fits(inner, schema))
            }),
            "additionalProperties" => each(value, |name, inner| {
                let named = keywords.get("properties").and_then(|all| all.get(name));
                named.is_some() || fits(inner, rule)
            }),
            "required" => rule.as_array().into_iter().flatten().all(|name| {
                let there =
                    |members: &Map<String, Value>| name.as_str().map(|n| members.contains_key(n));
                value.as_object().and_then(there).unwrap_or(true)
            }),
            "items" => value
                .as_array()
                .into_iter()
                .flatten()
                .all(|item| fits(item, rule)),
            "minimum" => value.as_f64() >= rule.as_f64() || !value.is_number(),
            "maximum" => value.as_f64() <= rule.as_f64() || !value.is_number(),
            "pattern" => value.as_str().is_none_or(|text| is_like(text, rule)),
            other => panic!("the keyword {other:?} is not known here"),
        })
}

fn each(value: &Value, rule: impl Fn(&str, &Value) -> bool) -> bool {
    let members = value.as_object().into_iter().flatten();
    members.into_iter().all(|(name, inner)| rule(name, inner))
}

fn is_a(value: &Value, kind: &Value) -> bool {
    match kind.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        other => panic!("the type {other:?} is not known here"),
    }
}

/// The only pattern in the schemas that this target has: that of references to containers.
fn is_like(text: &str, pattern: &Value) -> bool {
    assert_eq!(
        pattern,
        "^((lxc:)?[A-Za-z0-9][A-Za-z0-9._-]{0,63}|\
         (docker|podman):[A-Za-z0-9][A-Za-z0-9._-]{0,127}(@[A-Za-z0-9][A-Za-z0-9._-]{0,63})?)$"
    );
    let is_name = |text: &str, length: usize| {
        let fine = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.chars().all(fine)
            && text.len() <= length
    };
    match text.split_once(':') {
        Some(("lxc", name)) => is_name(name, 64),
        Some(("docker" | "podman", rest)) => match rest.split_once('@') {
            Some((name, place)) => is_name(name, 128) && is_name(place, 64),
            None => is_name(rest, 128),
        },
        _ => is_name(text, 64),
    }
}
