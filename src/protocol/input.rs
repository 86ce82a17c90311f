//! Input that a call needs from the user: requested in a result, answered by repeating the call.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{error::RpcError, json::Params};

/// The input that a call needs before it can continue (2026-07-28, multi round-trip requests).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InputRequired {
    /// The requests by key: method and parameters.
    pub requests: BTreeMap<String, (&'static str, Value)>,
    /// The state to restore in the next round; sealed before it is sent.
    pub state: Option<Value>,
}

impl InputRequired {
    /// Returns a value without requests.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one request.
    #[must_use]
    pub fn ask(mut self, key: &str, method: &'static str, params: Value) -> Self {
        self.requests.insert(key.to_owned(), (method, params));
        self
    }

    /// Keeps state for the next round.
    #[must_use]
    pub fn remember(mut self, state: Value) -> Self {
        self.state = Some(state);
        self
    }

    /// Returns the result on the wire; `sealed` is the sealed state that the client sends back.
    pub fn to_result(&self, sealed: Option<String>) -> Value {
        let mut result = Map::from_iter([("resultType".to_owned(), json!("input_required"))]);
        if !self.requests.is_empty() {
            result.insert("inputRequests".to_owned(), self.to_requests());
        }
        if let Some(sealed) = sealed {
            result.insert("requestState".to_owned(), json!(sealed));
        }
        Value::Object(result)
    }

    /// Returns only the requests, by key.
    pub fn to_requests(&self) -> Value {
        let requests = self.requests.iter();
        let requests = requests.map(|(key, (method, params))| {
            (key.clone(), json!({ "method": method, "params": params }))
        });
        Value::Object(requests.collect())
    }
}

/// The answers that a repeated call brings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InputAnswers {
    /// The answers by key.
    pub responses: Map<String, Value>,
    /// The state from the earlier round.
    pub state: Option<Value>,
}

impl InputAnswers {
    /// Removes the answers and the sealed state from a call's parameters.
    pub fn take(params: &mut Params) -> Result<(Self, Option<String>), RpcError> {
        let responses = match params.remove("inputResponses") {
            None => Map::new(),
            Some(Value::Object(responses)) => responses,
            Some(_) => return Err(RpcError::invalid_params("inputResponses must be an object")),
        };
        let sealed = match params.remove("requestState") {
            None => None,
            Some(Value::String(sealed)) => Some(sealed),
            Some(_) => return Err(RpcError::invalid_params("requestState must be a string")),
        };
        Ok((
            Self {
                responses,
                state: None,
            },
            sealed,
        ))
    }

    /// Returns the content of an accepted form, if this key was answered with one.
    pub fn accepted(&self, key: &str) -> Option<&Map<String, Value>> {
        let answer = self.responses.get(key)?;
        let accepted = answer.get("action").and_then(Value::as_str) == Some("accept");
        accepted.then(|| answer.get("content")?.as_object())?
    }
}
