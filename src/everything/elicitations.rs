//! The fixtures' requests to a client, and the parsing of its responses.

use serde_json::{Value, json};

use crate::protocol::{Inputs, RpcError};
use crate::registry::Cx;

/// The method of forms.
pub const FORM: &str = "elicitation/create";

/// The method of completions by the client's model.
pub const SAMPLE: &str = "sampling/createMessage";

/// The method of the client's roots.
pub const ROOTS: &str = "roots/list";

/// A form: its message to the person, its fields by name, and which of them are required.
pub fn form(message: &str, fields: &Value, required: &[&str]) -> Value {
    let schema = json!({ "type": "object", "properties": fields, "required": required });
    json!({ "message": message, "requestedSchema": schema })
}

/// A form with the single field `name`.
pub fn name_form() -> Value {
    let fields = json!({ "name": { "type": "string", "title": "Name" } });
    form("What is your name?", &fields, &["name"])
}

/// A prompt for the client's model.
pub fn sample(prompt: &str) -> Value {
    json!({
        "messages": [{ "role": "user", "content": { "type": "text", "text": prompt } }],
        "maxTokens": 100,
    })
}

/// The whole response with this key, if it has the shape of responses to this method.
pub fn answered<'a>(inputs: &'a Inputs, key: &str, method: &str) -> Option<&'a Value> {
    let answer = inputs.responses.get(key)?;
    let fits = match method {
        FORM => matches!(
            answer.get("action")?.as_str()?,
            "accept" | "decline" | "cancel"
        ),
        SAMPLE => answer.get("content").is_some(),
        _ => answer.get("roots").is_some_and(Value::is_array),
    };
    fits.then_some(answer)
}

/// The person's action on a form, with the fields as returned; `None` if there is no response with this key, or
/// if it is not one to a form.
pub fn form_answer(inputs: &Inputs, key: &str) -> Option<String> {
    let answer = inputs.responses.get(key)?;
    match answer.get("action").and_then(Value::as_str)? {
        "accept" => inputs
            .accepted(key)
            .map(|content| format!("accept {}", json!(content))),
        action @ ("decline" | "cancel") => Some(action.to_owned()),
        _ => None,
    }
}

/// The text in a field of an accepted form.
pub fn accepted_text(inputs: &Inputs, key: &str, field: &str) -> Option<String> {
    let text = inputs.accepted(key)?.get(field)?.as_str()?;
    Some(text.to_owned())
}

/// Whether the person declined or cancelled a form.
pub fn refused(inputs: &Inputs, key: &str) -> bool {
    let answer = inputs.responses.get(key);
    let action = answer.and_then(|a| a.get("action")).and_then(Value::as_str);
    matches!(action, Some("decline" | "cancel"))
}

/// The text that the client's model wrote: one block, or a list of them from 2025-11-25 on.
pub fn sampled_text(inputs: &Inputs, key: &str) -> Option<String> {
    let content = inputs.responses.get(key)?.get("content")?;
    let blocks = content
        .as_array()
        .map_or_else(|| std::slice::from_ref(content), Vec::as_slice);
    let texts: Vec<&str> = blocks
        .iter()
        .filter_map(|block| block.get("text")?.as_str())
        .collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// The URIs of the client's roots.
pub fn root_uris(inputs: &Inputs, key: &str) -> Option<Vec<String>> {
    let roots = inputs.responses.get(key)?.get("roots")?.as_array()?;
    let uris = roots.iter().map(|root| root.get("uri")?.as_str());
    uris.map(|uri| uri.map(str::to_owned)).collect()
}

/// Fails unless the client supports sampling: the fixture does not use it, but requires it.
pub fn needs_sampling(cx: &Cx) -> Result<(), RpcError> {
    if cx.capabilities().sampling() {
        Ok(())
    } else {
        Err(RpcError::missing_capability(&json!({ "sampling": {} })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(responses: &Value) -> Inputs {
        Inputs {
            responses: responses.as_object().unwrap().clone(),
            state: None,
        }
    }

    #[test]
    fn only_an_answer_of_the_right_shape_counts() {
        let name = |answer: Value| accepted_text(&inputs(&json!({ "k": answer })), "k", "name");
        let accepted = json!({ "action": "accept", "content": { "name": "Alice" } });
        assert_eq!(name(accepted.clone()).as_deref(), Some("Alice"));
        for wrong in [
            json!(12345),
            json!({ "action": "accept" }),
            json!({ "action": "accept", "content": { "name": 1 } }),
            json!({ "action": "decline", "content": { "name": "Alice" } }),
        ] {
            assert_eq!(name(wrong.clone()), None, "{wrong}");
        }
        assert_eq!(
            accepted_text(&inputs(&json!({ "other": accepted })), "k", "name"),
            None
        );
    }

    #[test]
    fn a_model_answers_with_one_block_or_several() {
        let text =
            |content: Value| sampled_text(&inputs(&json!({ "k": { "content": content } })), "k");
        let block = json!({ "type": "text", "text": "a" });
        assert_eq!(text(block.clone()).as_deref(), Some("a"));
        assert_eq!(text(json!([block, block])).as_deref(), Some("a\na"));
        assert_eq!(text(json!({ "type": "image", "data": "" })), None);
    }
}
