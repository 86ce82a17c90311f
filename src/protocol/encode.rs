//! One internal model, five revisions: removes or rewrites what a stateful revision does not define.

use serde_json::{Map, Value, json};

use super::{error::RpcError, error::code, key, version::Version};

/// Rewrites a result of the stateless shape for a session's revision.
pub fn for_stateful(method: &str, mut result: Value, version: Version) -> Value {
    let Some(object) = result.as_object_mut() else {
        return result;
    };
    for modern in ["resultType", "ttlMs", "cacheScope"] {
        object.remove(modern);
    }
    without_server_info(object);
    match method {
        "tools/list" => rewrite_each(object, "tools", |tool| downgrade_tool(tool, version)),
        "tools/call" => downgrade_call_result(object, version),
        "prompts/get" => rewrite_each(object, "messages", |message| {
            if let Some(Value::Object(block)) = message.get_mut("content") {
                downgrade_block(block, version);
            }
        }),
        "prompts/list" => {
            rewrite_each(object, "prompts", |prompt| downgrade_entry(prompt, version));
        }
        "resources/list" => rewrite_each(object, "resources", |resource| {
            downgrade_entry(resource, version);
        }),
        "resources/templates/list" => {
            rewrite_each(object, "resourceTemplates", |template| {
                downgrade_entry(template, version);
            });
        }
        _ => {}
    }
    result
}

/// Rewrites an error for a session. A missing resource has its own code, and codes of the stateless revision become
/// "invalid parameters".
pub fn error_for_stateful(method: &str, mut error: RpcError) -> RpcError {
    let names_uri = error
        .data
        .as_ref()
        .is_some_and(|data| data.get("uri").is_some());
    if method.starts_with("resources/") && error.code == code::INVALID_PARAMS && names_uri {
        error.code = code::RESOURCE_NOT_FOUND;
    } else if (code::UNSUPPORTED_VERSION..=code::HEADER_MISMATCH).contains(&error.code) {
        error.code = code::INVALID_PARAMS;
    }
    error
}

fn without_server_info(object: &mut Map<String, Value>) {
    if let Some(Value::Object(meta)) = object.get_mut("_meta") {
        meta.remove(key::SERVER_INFO);
        if meta.is_empty() {
            object.remove("_meta");
        }
    }
}

fn rewrite_each(
    object: &mut Map<String, Value>,
    list: &str,
    rewrite: impl Fn(&mut Map<String, Value>),
) {
    let items = object.get_mut(list).and_then(Value::as_array_mut);
    for item in items.into_iter().flatten() {
        if let Some(item) = item.as_object_mut() {
            rewrite(item);
        }
    }
}

/// Titles and the time of the last change were added in 2025-06-18. Before that a tool's title was in its
/// annotations.
fn downgrade_entry(object: &mut Map<String, Value>, version: Version) {
    if version < Version::V2025_06_18 {
        object.remove("title");
        remove_last_modified(object);
    }
}

fn remove_last_modified(object: &mut Map<String, Value>) {
    if let Some(Value::Object(hints)) = object.get_mut("annotations") {
        hints.remove("lastModified");
    }
}

fn downgrade_tool(tool: &mut Map<String, Value>, version: Version) {
    if version < Version::V2025_06_18 {
        tool.remove("outputSchema");
        if let Some(title) = tool.remove("title")
            && let Some(Value::Object(hints)) = tool.get_mut("annotations")
        {
            hints.insert("title".into(), title);
        }
    } else if let Some(schema) = tool.get_mut("outputSchema")
        && schema.get("type").and_then(Value::as_str) != Some("object")
    {
        *schema = json!({ "type": "object", "properties": { "result": schema.take() }, "required": ["result"] });
    }
}

/// Structured content is an object in 2025-06-18 and 2025-11-25, and does not exist before.
fn downgrade_call_result(result: &mut Map<String, Value>, version: Version) {
    if version < Version::V2025_06_18 {
        result.remove("structuredContent");
        rewrite_each(result, "content", |block| downgrade_block(block, version));
    } else if let Some(value) = result.get_mut("structuredContent")
        && !value.is_object()
    {
        *value = json!({ "result": value.take() });
    }
}

/// Links were added in 2025-06-18, audio in 2025-03-26. Clients of older revisions get a text that names what was
/// left out.
fn downgrade_block(block: &mut Map<String, Value>, version: Version) {
    let field = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default();
    let text = match field("type") {
        "resource_link" if version < Version::V2025_06_18 => format!("resource: {}", field("uri")),
        "audio" if version < Version::V2025_03_26 => format!("audio: {}", field("mimeType")),
        _ if version < Version::V2025_06_18 => return remove_last_modified(block),
        _ => return,
    };
    *block = Map::from_iter([("type".into(), json!("text")), ("text".into(), json!(text))]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e9_e11_a_session_sees_no_code_of_the_stateless_revision() {
        for code in [
            code::HEADER_MISMATCH,
            code::MISSING_CAPABILITY,
            code::UNSUPPORTED_VERSION,
        ] {
            let error = RpcError::new(code, "words");
            assert_eq!(
                error_for_stateful("tools/call", error).code,
                code::INVALID_PARAMS
            );
        }
        let absent = || RpcError::resource_not_found("x:/y");
        let read = error_for_stateful("resources/read", absent());
        assert_eq!(read.code, code::RESOURCE_NOT_FOUND);
        let call = error_for_stateful("tools/call", absent());
        assert_eq!(call.code, code::INVALID_PARAMS);
    }

    fn modern(extra: &Value) -> Value {
        let mut result = json!({ "resultType": "complete", "_meta": { key::SERVER_INFO: {} } });
        result
            .as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        result
    }

    #[test]
    fn v1_nothing_modern_reaches_a_session() {
        let list = modern(&json!({ "tools": [], "ttlMs": 5, "cacheScope": "private" }));
        assert_eq!(
            for_stateful("tools/list", list, Version::V2025_11_25),
            json!({ "tools": [] })
        );
    }

    #[test]
    fn v2_v3_structured_content_by_revision() {
        let result = modern(&json!({ "content": [], "structuredContent": [1] }));
        let at = |version| for_stateful("tools/call", result.clone(), version);
        assert_eq!(at(Version::V2025_03_26), json!({ "content": [] }));
        assert_eq!(
            at(Version::V2025_06_18),
            json!({ "content": [], "structuredContent": { "result": [1] } })
        );
    }

    #[test]
    fn t7_v4_a_title_moves_into_the_annotations_of_the_oldest_revision() {
        let list = json!({ "tools": [{ "name": "a", "title": "A", "annotations": {}, "outputSchema": {} }] });
        let old = for_stateful("tools/list", list, Version::V2025_03_26);
        assert_eq!(
            old,
            json!({ "tools": [{ "name": "a", "annotations": { "title": "A" } }] })
        );
    }

    #[test]
    fn t7_v6_a_link_becomes_text_where_links_are_unknown() {
        let result =
            json!({ "content": [{ "type": "resource_link", "uri": "x:/y", "name": "y" }] });
        let old = for_stateful("tools/call", result, Version::V2025_03_26);
        assert_eq!(
            old,
            json!({ "content": [{ "type": "text", "text": "resource: x:/y" }] })
        );
    }

    #[test]
    fn t7_audio_becomes_text_where_audio_is_unknown() {
        let audio = json!({ "type": "audio", "data": "AAAA", "mimeType": "audio/wav" });
        let text = json!({ "type": "text", "text": "audio: audio/wav" });
        let called = json!({ "content": [audio] });
        let prompt = json!({ "messages": [{ "role": "user", "content": audio }] });
        for (method, result) in [("tools/call", called), ("prompts/get", prompt)] {
            let at = |version| for_stateful(method, result.clone(), version).to_string();
            assert!(
                at(Version::V2024_11_05).contains(&text.to_string()),
                "{method}"
            );
            assert_eq!(at(Version::V2025_03_26), result.to_string(), "{method}");
        }
    }

    #[test]
    fn t7_u8_the_oldest_revision_sees_no_time_of_the_last_change() {
        let hints = json!({ "priority": 1.0, "lastModified": "2026-01-01T00:00:00Z" });
        let resource = json!({ "uri": "x:/y", "name": "y", "title": "Y", "annotations": hints });
        let list = json!({ "resources": [resource] });
        let block = json!({ "type": "text", "text": "t", "annotations": hints });
        let call = json!({ "content": [block] });
        for version in [Version::V2025_03_26, Version::V2025_06_18] {
            let known = version >= Version::V2025_06_18;
            let listed = for_stateful("resources/list", list.clone(), version);
            let hints = &listed["resources"][0]["annotations"];
            assert_eq!(hints.get("lastModified").is_some(), known);
            assert_eq!(listed["resources"][0].get("title").is_some(), known);
            let called = for_stateful("tools/call", call.clone(), version);
            let hints = &called["content"][0]["annotations"];
            assert_eq!(hints.get("lastModified").is_some(), known);
            assert_eq!(hints["priority"], 1.0);
        }
    }
}
