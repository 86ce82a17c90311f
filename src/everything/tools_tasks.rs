//! Tools with calls that become tasks: because they take long, ask on the way, or always.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    elicitations::{FORM, accepted_text, form, refused},
    rounds::{NAME, ask_name},
};
use crate::protocol::{InputRequired, RpcError, code};
use crate::registry::{Answer, Cx, Result, Risk, ToolError, Toolset};

/// The duration of the jobs that fail.
const JOB: Duration = Duration::from_secs(1);

/// These tools have no state.
pub struct Jobs;

/// The toolset, as a table.
#[rustfmt::skip]
pub fn tools() -> Toolset<Jobs> {
    Toolset::over(Arc::new(Jobs))
        .answering("greet", Risk::Read, greet)
        .answering("slow_compute", Risk::Read, slow_compute).offers_task()
        .answering("failing_job", Risk::Read, failing_job).requires_task()
        .answering("protocol_error_job", Risk::Read, protocol_error_job).offers_task()
        .answering("confirm_delete", Risk::Read, confirm_delete).offers_task()
        .answering("multi_input", Risk::Read, multi_input).offers_task()
        .answering("test_tool_with_task", Risk::Read, with_task).requires_task()
}

/// Return a greeting; never a task.
#[derive(Deserialize, JsonSchema)]
struct Greet {
    /// The name to greet.
    #[serde(default)]
    name: String,
}

async fn greet(_: Arc<Jobs>, asked: Greet, _: Cx) -> Result<Answer> {
    Ok(Answer::text(format!("Hello, {}!", asked.name)))
}

/// Run for the given time; a task unless that is 0.
#[derive(Deserialize, JsonSchema)]
struct SlowCompute {
    /// The duration in seconds, at most an hour.
    #[serde(default)]
    seconds: u32,
    /// Text that is returned with the result.
    #[serde(default)]
    label: String,
}

async fn slow_compute(_: Arc<Jobs>, asked: SlowCompute, _: Cx) -> Result<Answer> {
    let SlowCompute { seconds, label } = asked;
    sleep(Duration::from_secs(seconds.min(3600).into())).await;
    let words = format!("Computed {label:?} for {seconds} seconds.");
    Ok(Answer::text(words))
}

/// Fail after a second with a tool error; always a task.
#[derive(Deserialize, JsonSchema)]
struct FailingJob {}

async fn failing_job(_: Arc<Jobs>, FailingJob {}: FailingJob, _: Cx) -> Result<Answer> {
    sleep(JOB).await;
    Err(ToolError::new("This job fails, as it is meant to.").into())
}

/// Fail after a second with a protocol error.
#[derive(Deserialize, JsonSchema)]
struct ProtocolErrorJob {}

async fn protocol_error_job(
    _: Arc<Jobs>,
    ProtocolErrorJob {}: ProtocolErrorJob,
    _: Cx,
) -> Result<Answer> {
    sleep(JOB).await;
    let words = "this job ends with an error of the protocol, as it is meant to";
    Err(RpcError::new(code::INTERNAL, words).into())
}

/// Ask the person before deleting a file, but delete nothing. If the client supports tasks, the task waits for
/// the answer.
#[derive(Deserialize, JsonSchema)]
struct ConfirmDelete {
    /// The file that would be deleted.
    #[serde(default)]
    filename: String,
}

async fn confirm_delete(_: Arc<Jobs>, asked: ConfirmDelete, cx: Cx) -> Result<Answer> {
    const KEY: &str = "confirm";
    let filename = asked.filename;
    let fields = json!({ "confirm": { "type": "boolean", "title": "Delete it" } });
    let question = form(&format!("Delete {filename:?}?"), &fields, &[]);
    let answers = cx
        .ask(InputRequired::new().ask(KEY, FORM, question))
        .await?;
    let confirmed = answers
        .get(KEY)
        .and_then(|answer| answer.pointer("/content/confirm"));
    let words = if confirmed == Some(&Value::Bool(true)) {
        "would have been deleted"
    } else {
        "stays"
    };
    Ok(Answer::text(format!("{filename:?} {words}.")))
}

/// Ask the person two questions at once, to be answered together or one by one.
#[derive(Deserialize, JsonSchema)]
struct MultiInput {}

async fn multi_input(_: Arc<Jobs>, MultiInput {}: MultiInput, cx: Cx) -> Result<Answer> {
    // The suite answers both forms with both fields, so neither has required fields.
    let name = json!({ "name": { "type": "string", "title": "Name" } });
    let confirm = json!({ "confirm": { "type": "boolean", "title": "Go on" } });
    let asked = InputRequired::new()
        .ask("name", FORM, form("What is your name?", &name, &[]))
        .ask("confirm", FORM, form("Go on?", &confirm, &[]));
    let answers = Value::Object(cx.ask(asked).await?);
    Ok(Answer::text(format!("Both were answered: {answers}")))
}

/// Ask for a name before the call becomes a task, and return a greeting as the task's result.
#[derive(Deserialize, JsonSchema)]
struct WithTask {}

async fn with_task(_: Arc<Jobs>, WithTask {}: WithTask, cx: Cx) -> Result<Answer> {
    let name = accepted_text(cx.inputs(), NAME, "name");
    if name.is_none() && !refused(cx.inputs(), NAME) {
        return Err(ask_name().into());
    }
    sleep(JOB).await;
    let name = name.unwrap_or_else(|| "whoever you are".to_owned());
    Ok(Answer::text(format!("Hello, {name}!")))
}
