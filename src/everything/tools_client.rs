//! Tools that need something from the client: its roots, its model, or its person by form or by URL.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use hyper::Uri;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    elicitations::{FORM, ROOTS, SAMPLE, answered},
    forms,
};
use crate::protocol::{Content, InputRequired, RpcError, code};
use crate::registry::{Answer, Caller, Cx, Interruption, Result, Risk, ToolError, Toolset};

/// The only key of a question, because each tool here asks one.
const KEY: &str = "answer";

/// The maximum number of errors with a URL to visit that are remembered; beyond it, all are forgotten.
const MAX_SENT_AWAY: usize = 256;

/// The URL in the error that makes a client visit a URL first.
const FIRST_STOP: &str = "https://modelcontextprotocol.io";

/// The state of these tools.
#[derive(Default)]
pub struct Client {
    /// Calls that were answered with an error that requires a visit to a URL: their next call continues.
    sent_away: Mutex<BTreeSet<String>>,
}

/// The toolset, as a table.
#[rustfmt::skip]
pub fn tools() -> Toolset<Client> {
    Toolset::over(Arc::new(Client::default()))
        .answering("get-roots-list", Risk::Read, roots).titled("Roots")
        .answering("trigger-sampling-request", Risk::Read, sampling).titled("Sampling request")
        .answering("trigger-sampling-request-async", Risk::Read, sampling_async).titled("Sampling request, as a task")
        .answering("trigger-elicitation-request", Risk::Read, elicitation).titled("Elicitation request")
        .answering("trigger-elicitation-request-async", Risk::Read, elicitation_async)
            .titled("Elicitation request, as a task")
        .answering("trigger-url-elicitation", Risk::Read, url).titled("URL elicitation")
}

/// List the client's roots. They are requested in every call, so a change is never missed.
#[derive(Deserialize, JsonSchema)]
struct Roots {}

async fn roots(_: Arc<Client>, Roots {}: Roots, cx: Cx) -> Result<Answer> {
    let answer = asked(&cx, ROOTS, || json!({}))?;
    let roots = answer.get("roots").and_then(Value::as_array);
    let lines: Vec<String> = roots
        .into_iter()
        .flatten()
        .enumerate()
        .map(root_line)
        .collect();
    Ok(Answer::text(if lines.is_empty() {
        "The client lists roots, and has none at the moment.".to_owned()
    } else {
        format!(
            "The client's roots ({}):\n\n{}",
            lines.len(),
            lines.join("\n\n")
        )
    }))
}

fn root_line((index, root): (usize, &Value)) -> String {
    let text = |field: &str| root.get(field).and_then(Value::as_str);
    let (name, uri) = (
        text("name").unwrap_or("without a name"),
        text("uri").unwrap_or_default(),
    );
    format!("{}. {name}\n   URI: {uri}", index + 1)
}

/// Ask the client's model to answer a prompt.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Sampling {
    /// The prompt.
    prompt: String,
    /// The maximum length of the answer, in tokens.
    #[serde(default = "hundred")]
    max_tokens: u64,
}

fn hundred() -> u64 {
    100
}

async fn sampling(_: Arc<Client>, asked_for: Sampling, cx: Cx) -> Result<Answer> {
    let answer = asked(&cx, SAMPLE, || sample(&asked_for))?;
    Ok(Answer::text(format!("LLM sampling result: \n{answer:#}")))
}

/// Ask the client's model to answer a prompt. A client of 2025-11-25 could run this as its own task, which later
/// revisions do not have; here the call waits for the answer.
#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
struct SamplingAsync(Sampling);

async fn sampling_async(_: Arc<Client>, asked_for: SamplingAsync, cx: Cx) -> Result<Answer> {
    let answer = asked(&cx, SAMPLE, || sample(&asked_for.0))?;
    Ok(at_once(&answer))
}

fn sample(asked_for: &Sampling) -> Value {
    json!({
        "messages": [{ "role": "user", "content": { "type": "text", "text": asked_for.prompt } }],
        "systemPrompt": "You are a helpful test server.",
        "maxTokens": asked_for.max_tokens,
        "temperature": 0.7,
    })
}

/// Ask the person with a form that has a field of every kind.
#[derive(Deserialize, JsonSchema)]
struct Elicitation {}

async fn elicitation(_: Arc<Client>, Elicitation {}: Elicitation, cx: Cx) -> Result<Answer> {
    let answer = asked(&cx, FORM, forms::every_field)?;
    let mut content = match (action(&answer), answer.get("content")) {
        ("accept", Some(Value::Object(fields))) => {
            let lines: Vec<String> = fields
                .iter()
                .map(|(name, value)| format!("- {name}: {value}"))
                .collect();
            vec![
                Content::text("The person filled in the form."),
                Content::text(format!("The fields:\n{}", lines.join("\n"))),
            ]
        }
        ("accept", _) => vec![Content::text("The person accepted, and filled in nothing.")],
        (other, _) => vec![Content::text(format!(
            "The person did not fill in the form: {other}."
        ))],
    };
    content.push(raw(&answer));
    Ok(Answer::of(content))
}

/// Ask the person with a short form. A client of 2025-11-25 could run this as its own task, which later revisions
/// do not have; here the call waits for the answer.
#[derive(Deserialize, JsonSchema)]
struct ElicitationAsync {}

async fn elicitation_async(
    _: Arc<Client>,
    ElicitationAsync {}: ElicitationAsync,
    cx: Cx,
) -> Result<Answer> {
    let answer = asked(&cx, FORM, forms::few_fields)?;
    Ok(at_once(&answer))
}

/// Send the person to a URL: by a question, or by an error that a client of 2025-11-25 understands.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Visit {
    /// The URL to visit.
    url: String,
    /// The message that the person reads before.
    #[serde(default = "open_it")]
    message: String,
    /// The id of the visit in 2025-11-25; a random UUID if absent.
    elicitation_id: Option<String>,
    /// In 2025-11-25, answer the first such call with the error -32042, which has a URL to visit first; the same
    /// call again asks as usual. Later revisions have no such error, so it has no effect there.
    #[serde(default)]
    error_path: bool,
}

fn open_it() -> String {
    "Please open the link to go on.".to_owned()
}

async fn url(client: Arc<Client>, asked_for: Visit, cx: Cx) -> Result<Answer> {
    if !is_web_address(&asked_for.url) {
        return Err(ToolError::new("url is an https:// or http:// URL with a host").into());
    }
    let session = cx.caller().session.is_some();
    if asked_for.error_path && session && cx.inputs().responses.is_empty() {
        client.send_away_once(&cx, &asked_for)?;
    }
    let answer = asked(&cx, FORM, || {
        let mut params =
            json!({ "mode": "url", "url": asked_for.url, "message": asked_for.message });
        // Only revisions with sessions have an id for a visit.
        if let (Some(id), true, Some(params)) =
            (&asked_for.elicitation_id, session, params.as_object_mut())
        {
            params.insert("elicitationId".into(), json!(id));
        }
        params
    })?;
    let words = match action(&answer) {
        "accept" => format!("The person agreed to open {}", asked_for.url),
        other => format!("The person did not open the URL: {other}."),
    };
    Ok(Answer::of(vec![Content::text(words), raw(&answer)]))
}

/// Whether a person may be sent to this URL; other schemes could run as a script in the client.
fn is_web_address(url: &str) -> bool {
    let parsed = url.parse::<Uri>().ok();
    parsed.is_some_and(|uri| {
        matches!(uri.scheme_str(), Some("https" | "http"))
            && uri.authority().is_some_and(|at| !at.as_str().contains('@'))
    })
}

impl Client {
    /// Fails for the first call of its kind, but not for the next.
    fn send_away_once(&self, cx: &Cx, asked_for: &Visit) -> Result<()> {
        if !cx.capabilities().elicitation_url() {
            return Ok(());
        }
        let Caller { agent, session, .. } = cx.caller();
        let key = format!(
            "{agent} {session:?} {} {:?}",
            asked_for.url, asked_for.elicitation_id
        );
        let mut sent_away = self
            .sent_away
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if sent_away.remove(&key) {
            return Ok(());
        }
        if sent_away.len() >= MAX_SENT_AWAY {
            sent_away.clear();
        }
        sent_away.insert(key);
        Err(visit_first().into())
    }
}

fn visit_first() -> RpcError {
    let visit = json!({
        "mode": "url",
        "elicitationId": Uuid::new_v4().to_string(),
        "url": FIRST_STOP,
        "message": "Open this link, then call again.",
    });
    let words = "a URL is to be visited before this call";
    RpcError::new(code::URL_ELICITATION_REQUIRED, words)
        .with_data(json!({ "elicitations": [visit] }))
}

/// Returns the client's response to the only question of a call; asks if there is none yet.
fn asked(cx: &Cx, method: &'static str, params: impl FnOnce() -> Value) -> Result<Value> {
    match answered(cx.inputs(), KEY, method) {
        Some(answer) => Ok(answer.clone()),
        None => Err(Interruption::Ask(InputRequired::new().ask(
            KEY,
            method,
            params(),
        ))),
    }
}

fn action(answer: &Value) -> &str {
    answer
        .get("action")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn raw(answer: &Value) -> Content {
    Content::text(format!("\nRaw result: {answer:#}"))
}

fn at_once(answer: &Value) -> Answer {
    Answer::text(format!("[SYNC] The client answered at once:\n{answer:#}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_sent_to_web_addresses_alone() {
        assert!(is_web_address("https://example.org/a?b#c"));
        assert!(is_web_address("http://127.0.0.1:8080"));
        for wrong in [
            "javascript:alert(1)",
            "file:///etc",
            "/a",
            "https://",
            "https://a:b@example.org/",
        ] {
            assert!(!is_web_address(wrong), "{wrong}");
        }
    }
}
