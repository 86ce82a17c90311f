//! What calls of tools and prompts share: name, arguments, and the rounds of asking the person at the client.

use serde_json::{Map, Value};

use super::{
    call::{Call, Outcome},
    engine::Engine,
    sealed::digest_of,
};
use crate::protocol::{InputRequired, Inputs, RpcError};
use crate::registry::{Caller, Cx};

/// The `name` of a call's parameters.
pub fn name(params: &Map<String, Value>) -> Result<&str, RpcError> {
    params
        .get("name")
        .and_then(Value::as_str)
        .ok_or_else(|| RpcError::invalid_params("params.name is a string"))
}

/// The `arguments` of a call's parameters; absent is empty.
pub fn arguments(params: &mut Map<String, Value>) -> Result<Map<String, Value>, RpcError> {
    match params.remove("arguments") {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(arguments)) => Ok(arguments),
        Some(_) => Err(RpcError::invalid_params("params.arguments is an object")),
    }
}

/// What earlier rounds of a call have gathered, and what names the call.
pub struct Asked {
    /// The answers and the opened state.
    pub inputs: Inputs,
    digest: String,
}

/// Takes the earlier rounds out of a call's parameters, or from the stateful adapter.
pub fn inputs(engine: &Engine, call: &mut Call) -> Result<Asked, RpcError> {
    let (mut inputs, sealed) = Inputs::take(&mut call.params)?;
    // Only a call that is part of several rounds needs a name for itself.
    let digest = digest_of(&call.method, &call.params);
    if let Some(gathered) = call.inputs.take() {
        return Ok(Asked {
            inputs: gathered,
            digest,
        });
    }
    if let Some(sealed) = sealed {
        inputs.state = Some(engine.sealer.open(
            &sealed,
            call.context.who.agent_id().as_str(),
            &digest,
        )?);
    }
    Ok(Asked { inputs, digest })
}

/// Turns a question into an outcome, if the client has said that it can be asked.
pub fn ask(
    engine: &Engine,
    call: &Call,
    asked: &Asked,
    question: InputRequired,
) -> Result<Outcome, RpcError> {
    for (method, params) in question.requests.values() {
        call.context
            .capabilities
            .require(method, params)
            .map_err(|required| RpcError::missing_capability(&required))?;
    }
    let who = call.context.who.agent_id().as_str();
    let sealed = question
        .state
        .clone()
        .map(|state| engine.sealer.seal(state, who, &asked.digest));
    Ok(Outcome::Ask(question, sealed))
}

/// A call's surroundings as its function sees them.
pub fn surroundings(call: &Call, reference: String, inputs: Inputs) -> Cx {
    let who = &call.context.who;
    let caller = Caller {
        agent: who.agent_id().as_str().into(),
        name: who.name().into(),
        policy: who.preset().as_str(),
        space: who.space().map(Into::into),
    };
    Cx::new(reference, caller).with_client(call.context.capabilities.clone(), inputs)
}
