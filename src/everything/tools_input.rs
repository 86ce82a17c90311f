//! Tools that need something from the client once: its person, its model, or a capability.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::elicitations::{
    FORM, SAMPLE, form, form_answer, name_form, needs_sampling, sample, sampled_text,
};
use crate::protocol::InputRequired;
use crate::registry::{Answer, Cx, Interruption, Result, Risk, Toolset};

/// The only key of a question, because each tool here asks one.
const KEY: &str = "answer";

/// These tools have no state.
pub struct Questions;

/// The toolset, as a table.
pub fn tools() -> Toolset<Questions> {
    Toolset::over(Arc::new(Questions))
        .answering("test_sampling", Risk::Read, sampling)
        .answering("test_elicitation", Risk::Read, elicitation)
        .answering("test_elicitation_sep1034_defaults", Risk::Read, defaults)
        .answering("test_elicitation_sep1330_enums", Risk::Read, enums)
        .answering("test_streaming_elicitation", Risk::Read, streaming)
        .answering("test_missing_capability", Risk::Read, missing_capability)
}

/// Ask the client's model to answer a prompt.
#[derive(Deserialize, JsonSchema)]
struct Sampling {
    /// The prompt.
    prompt: String,
}

async fn sampling(_: Arc<Questions>, asked: Sampling, cx: Cx) -> Result<Answer> {
    match sampled_text(cx.inputs(), KEY) {
        Some(text) => Ok(Answer::text(format!("LLM response: {text}"))),
        None => Err(question(SAMPLE, sample(&asked.prompt))),
    }
}

/// Ask the person for a user name and an e-mail address.
#[derive(Deserialize, JsonSchema)]
struct Elicitation {
    /// The message that the person reads.
    message: String,
}

async fn elicitation(_: Arc<Questions>, asked: Elicitation, cx: Cx) -> Result<Answer> {
    let fields = json!({
        "username": { "type": "string", "description": "The user's name" },
        "email": { "type": "string", "description": "The user's e-mail address" },
    });
    ask_form(&cx, "User response", || {
        form(&asked.message, &fields, &["username", "email"])
    })
}

/// Ask the person with a form that has default values, one field of each type.
#[derive(Deserialize, JsonSchema)]
struct Defaults {}

async fn defaults(_: Arc<Questions>, Defaults {}: Defaults, cx: Cx) -> Result<Answer> {
    let fields = json!({
        "name": { "type": "string", "default": "John Doe" },
        "age": { "type": "integer", "default": 30 },
        "score": { "type": "number", "default": 95.5 },
        "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
        "verified": { "type": "boolean", "default": true },
    });
    ask_form(&cx, "Elicitation completed", || {
        form("Check what is filled in, and change it.", &fields, &[])
    })
}

/// Ask the person to choose, with each kind of choice that a form can have.
#[derive(Deserialize, JsonSchema)]
struct Enums {}

async fn enums(_: Arc<Questions>, Enums {}: Enums, cx: Cx) -> Result<Answer> {
    let plain = json!(["option1", "option2", "option3"]);
    let titled = json!([
        { "const": "value1", "title": "First option" },
        { "const": "value2", "title": "Second option" },
        { "const": "value3", "title": "Third option" },
    ]);
    let fields = json!({
        "untitledSingle": { "type": "string", "enum": plain },
        "titledSingle": { "type": "string", "oneOf": titled },
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option one", "Option two", "Option three"],
        },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": plain } },
        "titledMulti": { "type": "array", "items": { "anyOf": titled } },
    });
    ask_form(&cx, "Elicitation completed", || {
        form("Choose.", &fields, &[])
    })
}

/// Report progress, then ask the person for a name. In 2026-07-28 the question is the result, not a request on
/// the stream.
#[derive(Deserialize, JsonSchema)]
struct Streaming {}

async fn streaming(_: Arc<Questions>, Streaming {}: Streaming, cx: Cx) -> Result<Answer> {
    cx.progress(1.0, Some(2.0), Some("A question follows"))
        .await;
    ask_form(&cx, "User response", name_form)
}

/// Require a client that declares `sampling`, and fail with an error that names it otherwise.
#[derive(Deserialize, JsonSchema)]
struct MissingCapability {}

async fn missing_capability(
    _: Arc<Questions>,
    MissingCapability {}: MissingCapability,
    cx: Cx,
) -> Result<Answer> {
    needs_sampling(&cx)?;
    Ok(Answer::text("The client declares sampling."))
}

/// Asks with a form; once there is a response, returns it as text.
fn ask_form(cx: &Cx, words: &str, form: impl FnOnce() -> Value) -> Result<Answer> {
    match form_answer(cx.inputs(), KEY) {
        Some(answer) => Ok(Answer::text(format!("{words}: {answer}"))),
        None => Err(question(FORM, form())),
    }
}

fn question(method: &'static str, params: Value) -> Interruption {
    InputRequired::new().ask(KEY, method, params).into()
}
