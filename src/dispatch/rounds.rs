//! What calls of tools and prompts share: name, arguments, and the rounds of asking the person at the client.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{
    call::{Call, Outcome},
    engine::Engine,
    reference,
    sealed::digest_of,
};
use crate::protocol::{ClientCapabilities, InputRequired, Inputs, Params, RpcError};
use crate::registry::{Caller, Cx};

/// The `name` of a call's parameters.
pub fn name(params: &Params) -> Result<&str, RpcError> {
    params
        .get("name")
        .and_then(Value::as_str)
        .ok_or_else(|| RpcError::invalid_params("params.name is a string"))
}

/// The `arguments` of a call's parameters; absent is empty.
pub fn arguments(params: &mut Params) -> Result<Map<String, Value>, RpcError> {
    match params.remove("arguments") {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(arguments)) => Ok(arguments),
        Some(_) => Err(RpcError::invalid_params("params.arguments is an object")),
    }
}

/// What the state of a call is bound to: a digest of its parameters; absent where none is carried.
pub struct Binding(Option<String>);

/// Takes the earlier rounds out of a call's parameters, or from the stateful adapter.
///
/// The digest covers the whole parameters, so it is made only for a call that brings state, or whose
/// function may give some to carry (`remembers`); within a session nothing is carried.
pub fn inputs(
    engine: &Engine,
    call: &mut Call,
    remembers: bool,
) -> Result<(Inputs, Binding), RpcError> {
    let (mut inputs, sealed) = Inputs::take(&mut call.params)?;
    if let Some(gathered) = call.inputs.take() {
        return Ok((gathered, Binding(None)));
    }
    let bound = remembers || sealed.is_some();
    let digest = bound.then(|| digest_of(&call.method, &call.params));
    if let (Some(sealed), Some(digest)) = (sealed, &digest) {
        let who = call.context.who.agent_id().as_str();
        inputs.state = Some(engine.sealer.open(&sealed, who, digest)?);
    }
    Ok((inputs, Binding(digest)))
}

/// Turns a question into an outcome, if the client has said that it can be asked.
pub fn ask(
    engine: &Engine,
    call: &Call,
    binding: &Binding,
    question: InputRequired,
) -> Result<Outcome, RpcError> {
    askable(&call.context.capabilities, &question)?;
    let who = call.context.who.agent_id().as_str();
    let sealed = match (&question.state, &binding.0) {
        (Some(state), Some(digest)) => Some(engine.sealer.seal(state.clone(), who, digest)),
        (Some(_), None) if call.context.session.is_none() => return Err(undeclared(call)),
        _ => None,
    };
    Ok(Outcome::Ask(question, sealed))
}

/// Whether the client has said that it can be asked this.
pub fn askable(
    capabilities: &ClientCapabilities,
    question: &InputRequired,
) -> Result<(), RpcError> {
    for (method, params) in question.requests.values() {
        capabilities
            .require(method, params)
            .map_err(|required| RpcError::missing_capability(&required))?;
    }
    Ok(())
}

/// State that is bound to nothing would be good for every other call, so it never leaves.
fn undeclared(call: &Call) -> RpcError {
    let reference = reference::next();
    let method = &call.method;
    tracing::error!(
        %reference,
        %method,
        "a tool carries state without saying so in its row"
    );
    RpcError::internal(&reference)
}

/// A call's surroundings as its function sees them.
pub fn surroundings(call: &Call, reference: Arc<str>, inputs: Inputs) -> Cx {
    let who = &call.context.who;
    let caller = Caller {
        agent: who.agent_id().shared(),
        name: who.name().clone(),
        policy: who.preset().as_str(),
        space: who.space().clone(),
        reach: who.reach().clone(),
        session: call.context.session.clone(),
    };
    Cx::new(reference, caller)
        .with_client(call.context.capabilities.clone(), inputs)
        .with_hang_up(call.context.hang_up.clone())
}
