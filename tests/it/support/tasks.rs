//! Calls that become tasks, and requests about tasks.

use serde_json::{Value, json};

use super::answer::Answer;
use super::client::Client;
use super::machine::{IN_TIME, wait_until};
use super::request::Request;

/// The extension's name.
pub const TASKS: &str = "io.modelcontextprotocol/tasks";

/// Adds a client's capabilities for tasks and forms to a request.
pub fn knowing(request: Request) -> Request {
    let able = json!({ "elicitation": {}, "extensions": { TASKS: {} } });
    request.mcp_meta("clientCapabilities", able)
}

/// Returns a request about a task, by a client that does not declare the extension.
pub fn unknowing(client: &Client, method: &str, id: &str) -> Request {
    let request = client.modern(method).header("mcp-name", id);
    let request = request.param("taskId", json!(id));
    if method == "tasks/update" {
        request.param("inputResponses", json!({}))
    } else {
        request
    }
}

/// Returns a request about a task.
pub fn about(client: &Client, method: &str, id: &str) -> Request {
    knowing(unknowing(client, method, id))
}

/// Returns a tool call, by a client that supports tasks.
pub fn call(client: &Client, tool: &str, arguments: Value) -> Request {
    knowing(client.call(tool, arguments))
}

/// Returns the id of the task that a call became.
pub fn made(answer: &Answer) -> String {
    let result = answer.result();
    assert_eq!(result["resultType"], "task", "{result}");
    result["taskId"].as_str().unwrap().to_owned()
}

/// Returns the task from `tasks/get`.
pub fn task(client: &Client, id: &str) -> Value {
    about(client, "tasks/get", id).send().result()
}

/// Waits until the task has this status, and returns it.
pub fn until(client: &Client, id: &str, status: &str) -> Value {
    let mut last = Value::Null;
    wait_until(status, IN_TIME, || {
        last = task(client, id);
        last["status"] == status
    });
    last
}

/// Answers one of the task's questions with a form.
pub fn fill_in(client: &Client, id: &str, key: &str, content: &Value) -> Answer {
    let form = json!({ key: { "action": "accept", "content": content } });
    let request = about(client, "tasks/update", id);
    request.param("inputResponses", form).send()
}

/// Returns the keys of the task's questions.
pub fn asked(task: &Value) -> Vec<String> {
    let requests = task["inputRequests"].as_object();
    requests.map_or_else(Vec::new, |open| open.keys().cloned().collect())
}
