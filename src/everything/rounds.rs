//! Calls with several rounds: their questions, and the state in between.

use serde_json::{Value, json};

use super::elicitations::{FORM, ROOTS, SAMPLE, name_form, sample};
use crate::protocol::{InputRequired, Inputs};

/// The key of the question for a name.
pub const NAME: &str = "user_name";

/// The key of the question to the model.
pub const MODEL: &str = "capital";

/// The key of the question for the roots.
pub const PLACES: &str = "client_roots";

/// Asks the person for a name.
pub fn ask_name() -> InputRequired {
    and_name(InputRequired::new())
}

/// Adds the same question to others.
pub fn and_name(asked: InputRequired) -> InputRequired {
    asked.ask(NAME, FORM, name_form())
}

/// Adds a question to the model to others.
pub fn and_model(asked: InputRequired) -> InputRequired {
    let prompt = "What is the capital of France? Answer in one word.";
    asked.ask(MODEL, SAMPLE, sample(prompt))
}

/// Adds a request for the roots to others.
pub fn and_roots(asked: InputRequired) -> InputRequired {
    asked.ask(PLACES, ROOTS, json!({}))
}

/// The number of earlier rounds, according to the state.
pub fn round(inputs: &Inputs) -> u64 {
    let state = inputs.state.as_ref();
    state
        .and_then(|state| state.get("round"))
        .and_then(Value::as_u64)
        .unwrap_or(0)
}

/// The state after a round.
pub fn after_round(round: u64) -> Value {
    json!({ "round": round })
}
