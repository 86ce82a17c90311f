//! A client whose person is asked before a call runs, and what they say.

use serde_json::{Value, json};

use super::answer::Answer;
use super::client::Client;
use super::request::Request;
use super::session::Session;
use super::stream::Stream;

/// A clear yes.
pub fn yes() -> Value {
    json!({ "action": "accept", "content": { "run": true } })
}

/// A call by a client of 2026-07-28 that shows forms.
pub fn asking(client: &Client, tool: &str, arguments: Value) -> Request {
    let able = json!({ "elicitation": {} });
    client
        .call(tool, arguments)
        .mcp_meta("clientCapabilities", able)
}

/// The question that a call is answered with.
pub fn question(answer: &Answer) -> Value {
    let result = answer.result();
    assert_eq!(result["resultType"], "input_required", "{result}");
    result
}

/// The same call with an answer to its question.
pub fn again(call: &Request, question: &Value, answer: &Value) -> Request {
    let call = call
        .clone()
        .param("inputResponses", json!({ "confirm": answer }));
    call.param("requestState", question["requestState"].clone())
}

/// What comes of a call that the person agrees to.
pub fn agreed(client: &Client, tool: &str, arguments: Value) -> Answer {
    let call = asking(client, tool, arguments);
    again(&call, &question(&call.send()), &yes()).send()
}

/// The next message of a session's call, which is the question; its id and its parameters.
pub fn asked_on(stream: &mut Stream) -> (Value, Value) {
    let message = stream.call_message();
    assert_eq!(message["method"], "elicitation/create", "{message}");
    (message["id"].clone(), message["params"].clone())
}

/// Says something to a question of a session.
pub fn say(session: &Session, id: &Value, answer: &Value) -> Answer {
    let message = json!({ "jsonrpc": "2.0", "id": id, "result": answer });
    session.post(message).send()
}
