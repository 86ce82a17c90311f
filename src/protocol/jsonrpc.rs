//! JSON-RPC 2.0: parses request bodies and writes responses.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    error::RpcError,
    error::code,
    json::{BodySeed, Member, MessageMembers, MethodName, Params, ParsedBody, parse_as},
};

/// A request's id: text or an integer, never null (MCP, basic).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RequestId {
    /// An integer.
    Number(i64),
    /// A text.
    Text(String),
}

/// A call that expects a response.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcRequest {
    /// Returned in the response.
    pub id: RequestId,
    /// The method's name.
    pub method: MethodName,
    /// The parameters; empty when there were none.
    pub params: Params,
}

/// A call that expects no response.
#[derive(Debug, Clone, PartialEq)]
pub struct IncomingNotification {
    /// The method's name.
    pub method: MethodName,
    /// The parameters; empty when there were none.
    pub params: Params,
}

/// The client's response to a request from the server (stateful revisions only).
#[derive(Debug, Clone, PartialEq)]
pub struct RpcResponse {
    /// The id of the server's request.
    pub id: RequestId,
    /// The result or the error.
    pub outcome: Result<Value, Value>,
}

/// One message.
#[derive(Debug, Clone, PartialEq)]
pub enum RpcMessage {
    /// Expects a response.
    Request(RpcRequest),
    /// Expects no response.
    Notification(IncomingNotification),
    /// A response.
    Response(RpcResponse),
}

/// A whole body.
#[derive(Debug, Clone, PartialEq)]
pub enum RpcBody {
    /// One message.
    Single(RpcMessage),
    /// Several, as 2025-03-26 allows.
    Batch(Vec<RpcMessage>),
}

/// The initial buffer size: most responses are shorter than this, in bytes.
const ROOM: usize = 512;

/// The most messages in a batch; a longer one is rejected.
const MAX_BATCH: usize = 100;

/// Reads a body. If a request cannot be served, its id is returned with the error.
pub fn read(bytes: &[u8]) -> Result<RpcBody, (Option<RequestId>, RpcError)> {
    let top = parse_as(bytes, BodySeed::BODY).map_err(|cause| {
        (
            None,
            RpcError::new(code::PARSE, format!("the body is not valid JSON: {cause}")),
        )
    })?;
    match top {
        ParsedBody::Several(items) if items.is_empty() || items.len() > MAX_BATCH => {
            let words = format!("a batch must have 1 to {MAX_BATCH} messages");
            Err((None, RpcError::invalid_request(words)))
        }
        ParsedBody::Several(items) => items
            .into_iter()
            .map(message)
            .collect::<Result<_, _>>()
            .map(RpcBody::Batch),
        ParsedBody::One(one) => message(one).map(RpcBody::Single),
    }
}

fn message(members: Option<MessageMembers>) -> Result<RpcMessage, (Option<RequestId>, RpcError)> {
    let Some(members) = members else {
        return Err((
            None,
            RpcError::invalid_request("a message must be a JSON object"),
        ));
    };
    let id = match members.id {
        None => None,
        Some(raw) => Some(RequestId::deserialize(raw).map_err(|_| {
            (
                None,
                RpcError::invalid_request(
                    "a message's id must be a string or an integer, not null",
                ),
            )
        })?),
    };
    let refuse = |words: &'static str| Err((id.clone(), RpcError::invalid_request(words)));
    if !members.is_2_0 {
        return refuse("a message must have \"jsonrpc\": \"2.0\"");
    }
    match members.method {
        Member::Absent => response(id, members.result, members.error),
        Member::Right(method) => match members.params {
            Member::Absent => Ok(call(id, method, Params::default())),
            Member::Right(params) => Ok(call(id, method, params)),
            Member::Other => refuse("params must be an object"),
        },
        Member::Other => refuse("method must be a string"),
    }
}

fn call(id: Option<RequestId>, method: MethodName, params: Params) -> RpcMessage {
    match id {
        Some(id) => RpcMessage::Request(RpcRequest { id, method, params }),
        None => RpcMessage::Notification(IncomingNotification { method, params }),
    }
}

fn response(
    id: Option<RequestId>,
    result: Option<Value>,
    error: Option<Value>,
) -> Result<RpcMessage, (Option<RequestId>, RpcError)> {
    let outcome = match (result, error) {
        (Some(result), None) => Some(Ok(result)),
        (None, Some(error)) => Some(Err(error)),
        _ => None,
    };
    let (Some(id), Some(outcome)) = (id, outcome) else {
        return Err((
            None,
            RpcError::invalid_request("a message must be a request, a notification or a response"),
        ));
    };
    Ok(RpcMessage::Response(RpcResponse { id, outcome }))
}

impl RpcResponse {
    /// Returns the bytes of a response. An error without an id answers a body that had none.
    pub fn write<T: Serialize + ?Sized>(
        id: Option<&RequestId>,
        outcome: Result<&T, &RpcError>,
    ) -> Vec<u8> {
        Self::write_into(ROOM, id, outcome)
    }

    /// Like `write`, with the approximate length of the response: a long one is then not moved as it grows.
    pub fn write_into<T: Serialize + ?Sized>(
        room: usize,
        id: Option<&RequestId>,
        outcome: Result<&T, &RpcError>,
    ) -> Vec<u8> {
        #[derive(Serialize)]
        struct Answer<'a, T: ?Sized> {
            jsonrpc: &'static str,
            #[serde(skip_serializing_if = "Option::is_none")]
            id: Option<&'a RequestId>,
            #[serde(skip_serializing_if = "Option::is_none")]
            result: Option<&'a T>,
            #[serde(skip_serializing_if = "Option::is_none")]
            error: Option<&'a RpcError>,
        }
        let answer = Answer {
            jsonrpc: "2.0",
            id,
            result: outcome.ok(),
            error: outcome.err(),
        };
        let mut bytes = Vec::with_capacity(room);
        // Only string keys and finite numbers: serialization cannot fail.
        let _ = serde_json::to_writer(&mut bytes, &answer);
        bytes
    }
}

impl RpcRequest {
    /// Returns the request as JSON, for a request from the server to a client.
    pub fn to_value(&self) -> Value {
        json!({ "jsonrpc": "2.0", "id": self.id, "method": self.method, "params": self.params })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_error(body: &str) -> (Option<RequestId>, i32) {
        let (id, error) = read(body.as_bytes()).unwrap_err();
        (id, error.code)
    }

    #[test]
    fn what_is_not_one_message_is_refused() {
        assert_eq!(read_error("{"), (None, code::PARSE));
        for body in [
            "1",
            "\"x\"",
            "[]",
            "[1]",
            r#"{"jsonrpc":"2.0"}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
        ] {
            assert_eq!(read_error(body).1, code::INVALID_REQUEST, "{body}");
        }
        let wrong_version = r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#;
        assert_eq!(
            read_error(wrong_version),
            (Some(RequestId::Number(7)), code::INVALID_REQUEST)
        );
        let array_params = r#"{"jsonrpc":"2.0","id":"a","method":"ping","params":[1]}"#;
        assert_eq!(
            read_error(array_params),
            (Some(RequestId::Text("a".into())), code::INVALID_REQUEST)
        );
    }

    #[test]
    fn requests_notifications_and_responses_are_told_apart() {
        let kind = |body: &str| match read(body.as_bytes()).unwrap() {
            RpcBody::Single(RpcMessage::Request(_)) => "request",
            RpcBody::Single(RpcMessage::Notification(_)) => "notification",
            RpcBody::Single(RpcMessage::Response(_)) => "response",
            RpcBody::Batch(_) => "batch",
        };
        assert_eq!(
            kind(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#),
            "request"
        );
        assert_eq!(kind(r#"{"jsonrpc":"2.0","method":"ping"}"#), "notification");
        assert_eq!(kind(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), "response");
        assert_eq!(
            kind(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#),
            "batch"
        );
    }

    #[test]
    fn an_answer_keeps_the_type_of_the_id() {
        let bytes = RpcResponse::write(Some(&RequestId::Text("1".into())), Ok(&json!({})));
        assert_eq!(bytes, br#"{"jsonrpc":"2.0","id":"1","result":{}}"#);
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let seed =
            br#"[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"a":1}}}]"#;
        for cut in 0..seed.len() {
            for byte in [0_u8, b'"', b'{', b'[', 0xff] {
                let mut bytes = seed.to_vec();
                bytes[cut] = byte;
                let _ = read(&bytes);
                let _ = read(&seed[..cut]);
            }
        }
    }
}
