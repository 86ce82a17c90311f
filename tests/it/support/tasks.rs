//! Calls that become tasks, and what is asked about them.

use serde_json::{Value, json};

use super::answer::Answer;
use super::client::Client;
use super::machine::{IN_TIME, wait_until};
use super::request::Request;

/// The extension's name.
pub const TASKS: &str = "io.modelcontextprotocol/tasks";

/// The same request by a client that knows of tasks, and shows forms.
pub fn knowing(request: Request) -> Request {
    let able = json!({ "elicitation": {}, "extensions": { TASKS: {} } });
    request.mcp_meta("clientCapabilities", able)
}

/// A request about a task, by a client that does not say that it knows of tasks.
pub fn unknowing(client: &Client, method: &str, id: &str) -> Request {
    let request = client.modern(method).header("mcp-name", id);
    let request = request.param("taskId", json!(id));
    if method == "tasks/update" {
        request.param("inputResponses", json!({}))
    } else {
        request
    }
}

/// A request about a task.
pub fn about(client: &Client, method: &str, id: &str) -> Request {
    knowing(unknowing(client, method, id))
}

/// A call of a tool, by a client that knows of tasks.
pub fn call(client: &Client, tool: &str, arguments: Value) -> Request {
    knowing(client.call(tool, arguments))
}

/// The id of the task that a call became.
pub fn made(answer: &Answer) -> String {
    let result = answer.result();
    assert_eq!(result["resultType"], "task", "{result}");
    result["taskId"].as_str().unwrap().to_owned()
}

/// The task as `tasks/get` has it.
pub fn task(client: &Client, id: &str) -> Value {
    about(client, "tasks/get", id).send().result()
}

/// The task when it has this status.
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

/// The keys of what the task asks.
pub fn asked(task: &Value) -> Vec<String> {
    let requests = task["inputRequests"].as_object();
    requests.map_or_else(Vec::new, |open| open.keys().cloned().collect())
}
