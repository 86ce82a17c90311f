//! JSON-RPC: messages are parsed exactly, rejections have a reason, and written messages can be parsed again.

use serde_json::{Map, Value, json};

use gatewren_wire::protocol::{
    RequestId, RpcBody, RpcError, RpcMessage, RpcResponse, code, key, read,
};

/// A body is parsed exactly as JSON-RPC 2.0 and MCP specify, and no other body is accepted.
pub fn reads_messages(data: &[u8]) {
    // A different parser: it accepts duplicate keys (the last one wins) and deeper nesting.
    let seen = serde_json::from_slice::<Value>(data).ok();
    match (read(data), seen) {
        (Ok(RpcBody::Single(message)), Some(value)) => stands_there(&message, &value),
        (Ok(RpcBody::Batch(messages)), Some(Value::Array(items))) => {
            assert_eq!(messages.len(), items.len(), "a batch keeps every message");
            for (message, value) in messages.iter().zip(&items) {
                stands_there(message, value);
            }
        }
        (Ok(body), seen) => panic!("{body:?} was read instead of {seen:?}"),
        (Err((id, error)), seen) => is_rightly_refused(id.as_ref(), &error, seen.as_ref()),
    }
}

/// Asserts that a message equals its JSON, and that its serialization parses to the same message.
fn stands_there(message: &RpcMessage, value: &Value) {
    assert!(is_message(value), "{value} was read as {message:?}");
    let written = match message {
        RpcMessage::Request(request) => request.to_value(),
        RpcMessage::Notification(note) => {
            json!({ "jsonrpc": "2.0", "method": note.method, "params": note.params })
        }
        RpcMessage::Response(response) => {
            let (name, outcome) = match &response.outcome {
                Ok(result) => ("result", result),
                Err(error) => ("error", error),
            };
            json!({ "jsonrpc": "2.0", "id": response.id, name: outcome })
        }
    };
    for member in ["jsonrpc", "id", "method", "result", "error"] {
        let is_answer = member == "result" || member == "error";
        if !is_answer || value.get("method").is_none() {
            assert_eq!(written.get(member), value.get(member), "{member}");
        }
    }
    if let Some(params) = value
        .get("params")
        .filter(|_| written.get("method").is_some())
    {
        says_the_same(written.get("params"), params);
    }
    let again = read(written.to_string().as_bytes());
    assert_eq!(
        again.as_ref(),
        Ok(&RpcBody::Single(message.clone())),
        "what we write"
    );
    if let (RpcMessage::Request(request), Some(Value::Object(result))) =
        (message, value.get("params"))
    {
        is_answered(&request.id, result);
    }
}

/// Asserts that every parameter is kept as received, and every key of `_meta` that is read.
fn says_the_same(written: Option<&Value>, params: &Value) {
    let parted = |params: Option<&Value>| {
        let mut members = params
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        let meta = members.remove("_meta").unwrap_or_default();
        (members, meta.as_object().cloned().unwrap_or_default())
    };
    let ((written, kept), (came, meta)) = (parted(written), parted(Some(params)));
    assert_eq!(written, came, "params");
    for (key, value) in &kept {
        assert_eq!(Some(value), meta.get(key), "{key} of _meta");
    }
    for key in [
        key::PROTOCOL_VERSION,
        key::CLIENT_CAPABILITIES,
        key::PROGRESS_TOKEN,
    ] {
        assert_eq!(kept.get(key), meta.get(key), "{key} of _meta");
    }
}

/// Asserts that a response is one message with the request's id, of the same type.
fn is_answered(id: &RequestId, result: &Map<String, Value>) {
    let error = RpcError::invalid_params("x").with_data(json!(result));
    for outcome in [Ok(result), Err(&error)] {
        let bytes = RpcResponse::write(Some(id), outcome);
        let Ok(RpcBody::Single(RpcMessage::Response(answer))) = read(&bytes) else {
            panic!(
                "an answer is not a response: {}",
                String::from_utf8_lossy(&bytes)
            );
        };
        assert_eq!(answer.id, *id);
        match answer.outcome {
            Ok(read) => assert_eq!(read, json!(result)),
            Err(read) => assert_eq!(read.get("data"), Some(&json!(result))),
        }
    }
}

/// Asserts that a rejection has the code of the standard, and the id of a request that waits for a response.
fn is_rightly_refused(id: Option<&RequestId>, error: &RpcError, seen: Option<&Value>) {
    let Some(value) = seen else {
        assert_eq!((id, error.code), (None, code::PARSE), "this is not JSON");
        return;
    };
    if error.code == code::PARSE {
        let stricter = ["duplicate key", "nested deeper than", "too many members"];
        let words = &error.message;
        assert!(
            stricter.iter().any(|reason| words.contains(reason)),
            "{words}: {value}"
        );
        return;
    }
    assert_eq!(error.code, code::INVALID_REQUEST);
    if let Value::Array(items) = value {
        let whole = (1..=100).contains(&items.len()) && items.iter().all(is_message);
        assert!(!whole, "{value} is a batch");
        return;
    }
    assert!(!is_message(value), "{value} is a message");
    if value.get("method").is_some() && value.get("id").is_some_and(is_id) {
        let id = id.map(|id| json!(id));
        assert_eq!(
            id.as_ref(),
            value.get("id"),
            "the id goes back with the error"
        );
    }
}

/// JSON-RPC 2.0 sections 4 and 5, with MCP's restrictions (ids are never null, parameters are an object).
fn is_message(value: &Value) -> bool {
    let Value::Object(members) = value else {
        return false;
    };
    let id_is_fine = members.get("id").is_none_or(is_id);
    let body_is_fine = match members.get("method") {
        Some(Value::String(_)) => members.get("params").is_none_or(Value::is_object),
        Some(_) => false,
        None => {
            let outcomes = ["result", "error"].map(|name| members.contains_key(name));
            members.contains_key("id") && outcomes.iter().filter(|there| **there).count() == 1
        }
    };
    members.get("jsonrpc") == Some(&json!("2.0")) && id_is_fine && body_is_fine
}

fn is_id(value: &Value) -> bool {
    value.is_string() || value.is_i64()
}
