//! Results in the shape of each stateful revision: no newer field is sent, no known field is lost.

use serde_json::{Map, Value};

use super::input::{parts, text};
use gatewren_wire::protocol::{RpcError, Version, code, error_for_stateful, for_stateful};

const METHODS: [&str; 6] = [
    "tools/list",
    "tools/call",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
];

/// First part: a method; second part: a result of the stateless shape, or an error's data.
pub fn say_nothing_newer(data: &[u8]) {
    let [method, result] = parts(data);
    let (Some(method), Ok(result)) = (text(method), serde_json::from_slice::<Value>(result)) else {
        return;
    };
    if !METHODS.contains(&method) {
        return;
    }
    for version in [
        Version::V2025_03_26,
        Version::V2025_06_18,
        Version::V2025_11_25,
    ] {
        let shaped = for_stateful(method, result.clone(), version);
        let again = for_stateful(method, shaped.clone(), version);
        assert_eq!(again, shaped, "shaping it again changes nothing");
        assert_eq!(shaped.is_object(), result.is_object());
        if let Value::Object(shaped) = &shaped {
            is_of(version, method, shaped);
        }
    }
    error(method, &result);
}

fn is_of(version: Version, method: &str, result: &Map<String, Value>) {
    for modern in ["resultType", "ttlMs", "cacheScope"] {
        assert!(!result.contains_key(modern), "{modern}");
    }
    let info = "io.modelcontextprotocol/serverInfo";
    assert!(
        result
            .get("_meta")
            .is_none_or(|meta| meta.get(info).is_none())
    );
    let titled = version >= Version::V2025_06_18;
    let list = match method {
        "tools/list" => "tools",
        "prompts/list" => "prompts",
        "resources/list" => "resources",
        "resources/templates/list" => "resourceTemplates",
        _ => "",
    };
    for item in objects(result.get(list)) {
        assert!(titled || !item.contains_key("title"), "{item:?}");
        if method == "tools/list"
            && let Some(schema) = item.get("outputSchema")
        {
            let kind = schema.get("type").and_then(Value::as_str);
            assert!(titled && kind == Some("object"), "{schema}");
        }
    }
    if method == "tools/call" {
        let structured = result.get("structuredContent");
        assert!(structured.is_none_or(|value| titled && value.is_object()));
        let links = objects(result.get("content"))
            .any(|block| block.get("type").and_then(Value::as_str) == Some("resource_link"));
        assert!(titled || !links, "links came with 2025-06-18");
    }
}

fn objects(list: Option<&Value>) -> impl Iterator<Item = &Map<String, Value>> {
    let items = list.and_then(Value::as_array);
    items.into_iter().flatten().filter_map(Value::as_object)
}

/// Asserts that error codes which only the stateless revision has are not sent in a session.
fn error(method: &str, data: &Value) {
    let codes = [
        code::HEADER_MISMATCH,
        code::MISSING_CAPABILITY,
        code::UNSUPPORTED_VERSION,
        code::INVALID_PARAMS,
        code::INTERNAL,
    ];
    for code in codes {
        let error = RpcError::new(code, "x").with_data(data.clone());
        let shaped = error_for_stateful(method, error.clone());
        assert!(!(-32_099..=-32_020).contains(&shaped.code));
        assert_eq!((shaped.message, shaped.data), (error.message, error.data));
    }
}
