//! Tools with calls of several rounds: each case of `input_required`.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{
    elicitations::{FORM, accepted_text, form, needs_sampling, refused, root_uris, sampled_text},
    rounds::{MODEL, NAME, PLACES, after_round, and_model, and_name, and_roots, ask_name, round},
};
use crate::protocol::InputRequired;
use crate::registry::{Answer, Cx, Result, Risk, Toolset};

/// These tools have no state: the state between rounds is sent to the client and back.
pub struct Rounds;

/// The toolset, as a table.
#[rustfmt::skip]
pub fn tools() -> Toolset<Rounds> {
    Toolset::over(Arc::new(Rounds))
        .answering("test_input_required_result_elicitation", Risk::Read, elicitation)
        .answering("test_input_required_result_sampling", Risk::Read, sampling)
        .answering("test_input_required_result_list_roots", Risk::Read, list_roots)
        .answering("test_input_required_result_request_state", Risk::Read, request_state).remembers()
        .answering("test_input_required_result_tampered_state", Risk::Read, tampered_state).remembers()
        .answering("test_input_required_result_multiple_inputs", Risk::Read, multiple_inputs).remembers()
        .answering("test_input_required_result_multi_round", Risk::Read, multi_round).remembers()
        .answering("test_input_required_result_capabilities", Risk::Read, capabilities)
}

/// Ask the person for a name, and return a greeting.
#[derive(Deserialize, JsonSchema)]
struct Elicitation {}

async fn elicitation(_: Arc<Rounds>, Elicitation {}: Elicitation, cx: Cx) -> Result<Answer> {
    let Some(greeting) = greeting(&cx) else {
        return Err(ask_name().into());
    };
    Ok(Answer::text(greeting))
}

/// Ask the client's model for the capital of France.
#[derive(Deserialize, JsonSchema)]
struct Sampling {}

async fn sampling(_: Arc<Rounds>, Sampling {}: Sampling, cx: Cx) -> Result<Answer> {
    match sampled_text(cx.inputs(), MODEL) {
        Some(text) => Ok(Answer::text(format!("The model said: {text}"))),
        None => Err(and_model(InputRequired::new()).into()),
    }
}

/// Ask the client for its roots.
#[derive(Deserialize, JsonSchema)]
struct ListRoots {}

async fn list_roots(_: Arc<Rounds>, ListRoots {}: ListRoots, cx: Cx) -> Result<Answer> {
    match root_uris(cx.inputs(), PLACES) {
        Some(uris) => Ok(Answer::text(format!("The roots: {}", uris.join(", ")))),
        None => Err(and_roots(InputRequired::new()).into()),
    }
}

/// Ask the person to confirm, and check the state that was sent with the question.
#[derive(Deserialize, JsonSchema)]
struct RequestState {}

async fn request_state(_: Arc<Rounds>, RequestState {}: RequestState, cx: Cx) -> Result<Answer> {
    confirmed_with_state(&cx)
}

/// The same: a client that alters the state between the rounds gets an error.
#[derive(Deserialize, JsonSchema)]
struct TamperedState {}

async fn tampered_state(_: Arc<Rounds>, TamperedState {}: TamperedState, cx: Cx) -> Result<Answer> {
    confirmed_with_state(&cx)
}

fn confirmed_with_state(cx: &Cx) -> Result<Answer> {
    const KEY: &str = "confirm";
    let answered = cx.inputs().accepted(KEY).is_some() || refused(cx.inputs(), KEY);
    if answered && round(cx.inputs()) == 1 {
        return Ok(Answer::text("state-ok: what was remembered came back"));
    }
    let fields = json!({ "ok": { "type": "boolean", "title": "Go on" } });
    let question = form("Please confirm.", &fields, &["ok"]);
    Err(InputRequired::new()
        .ask(KEY, FORM, question)
        .remember(after_round(1))
        .into())
}

/// Ask for a name, for the capital of France and for the roots, all at once.
#[derive(Deserialize, JsonSchema)]
struct MultipleInputs {}

async fn multiple_inputs(
    _: Arc<Rounds>,
    MultipleInputs {}: MultipleInputs,
    cx: Cx,
) -> Result<Answer> {
    let greeting = greeting(&cx);
    let capital = sampled_text(cx.inputs(), MODEL);
    let roots = root_uris(cx.inputs(), PLACES);
    let (Some(greeting), Some(capital), Some(roots)) = (greeting, capital, roots) else {
        let all = and_roots(and_model(ask_name()));
        return Err(all.remember(after_round(1)).into());
    };
    let roots = roots.join(", ");
    Ok(Answer::text(format!(
        "{greeting} The model said: {capital}. The roots: {roots}"
    )))
}

/// Ask for a name, then for a colour, then end: two rounds, each with its own state.
#[derive(Deserialize, JsonSchema)]
struct MultiRound {}

async fn multi_round(_: Arc<Rounds>, MultiRound {}: MultiRound, cx: Cx) -> Result<Answer> {
    const COLOUR: &str = "colour";
    match round(cx.inputs()) {
        0 => Err(ask_name().remember(after_round(1)).into()),
        1 => {
            let fields = json!({ "colour": { "type": "string", "title": "Colour" } });
            let question = form("Which colour do you like?", &fields, &[]);
            Err(InputRequired::new()
                .ask(COLOUR, FORM, question)
                .remember(after_round(2))
                .into())
        }
        _ => Ok(Answer::text("Both rounds are done.")),
    }
}

/// Ask only for what the client declares: a name, the capital of France, the roots.
#[derive(Deserialize, JsonSchema)]
struct Capabilities {}

async fn capabilities(_: Arc<Rounds>, Capabilities {}: Capabilities, cx: Cx) -> Result<Answer> {
    let can = cx.capabilities();
    let mut asked = InputRequired::new();
    if can.elicitation_form() && greeting(&cx).is_none() {
        asked = and_name(asked);
    }
    if can.sampling() && sampled_text(cx.inputs(), MODEL).is_none() {
        asked = and_model(asked);
    }
    if can.roots() && root_uris(cx.inputs(), PLACES).is_none() {
        asked = and_roots(asked);
    }
    if !asked.requests.is_empty() {
        return Err(asked.into());
    }
    if !can.elicitation_form() && !can.roots() {
        needs_sampling(&cx)?;
    }
    Ok(Answer::text("Everything that was asked for is there."))
}

/// The greeting, once the question for a name is answered.
fn greeting(cx: &Cx) -> Option<String> {
    if refused(cx.inputs(), NAME) {
        return Some("Hello, whoever you are!".to_owned());
    }
    accepted_text(cx.inputs(), NAME, "name").map(|name| format!("Hello, {name}!"))
}
