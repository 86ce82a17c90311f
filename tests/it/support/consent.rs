//! A client that asks its user before a call runs, and the user's answers.

use serde_json::{Value, json};

use super::answer::Answer;
use super::client::Client;
use super::request::Request;
use super::session::Session;
use super::stream::Stream;

/// Returns a consenting answer.
pub fn yes() -> Value {
    json!({ "action": "accept", "content": { "run": true } })
}

/// Returns a call by a client of 2026-07-28 that supports form elicitation.
pub fn asking(client: &Client, tool: &str, arguments: Value) -> Request {
    let able = json!({ "elicitation": {} });
    client
        .call(tool, arguments)
        .mcp_meta("clientCapabilities", able)
}

/// Returns the question in the response to a call.
pub fn question(answer: &Answer) -> Value {
    let result = answer.result();
    assert_eq!(result["resultType"], "input_required", "{result}");
    result
}

/// Returns the same call with an answer to its question.
pub fn again(call: &Request, question: &Value, answer: &Value) -> Request {
    let call = call
        .clone()
        .param("inputResponses", json!({ "confirm": answer }));
    match question.get("requestState") {
        Some(state) => call.param("requestState", state.clone()),
        None => call,
    }
}

/// Makes a call, consents, and returns the final response.
pub fn agreed(client: &Client, tool: &str, arguments: Value) -> Answer {
    let call = asking(client, tool, arguments);
    again(&call, &question(&call.send()), &yes()).send()
}

/// Returns the id and the parameters of the next message of a session's call, which must be the question.
pub fn asked_on(stream: &mut Stream) -> (Value, Value) {
    let message = stream.call_message();
    assert_eq!(message["method"], "elicitation/create", "{message}");
    (message["id"].clone(), message["params"].clone())
}

/// Answers a question of a session.
pub fn say(session: &Session, id: &Value, answer: &Value) -> Answer {
    let message = json!({ "jsonrpc": "2.0", "id": id, "result": answer });
    session.post(message).send()
}
