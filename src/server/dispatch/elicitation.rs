//! Shared by calls of tools and prompts: name, arguments, and the rounds of questions to the person at the client.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::call::{Call, CallOutcome};
use super::engine::Engine;
use super::reference;
use super::signed_state::digest_of;
use gatewren_gate::policy::has_brief_entries;
use gatewren_wire::protocol::{ClientCapabilities, InputAnswers, InputRequired, Params, RpcError};
use gatewren_wire::registry::{Caller, Cx};

/// The `name` in a call's parameters.
pub fn name(params: &Params) -> Result<&str, RpcError> {
    params
        .get("name")
        .and_then(Value::as_str)
        .ok_or_else(|| RpcError::invalid_params("params.name must be a string"))
}

/// Takes the `arguments` from a call's parameters; absent arguments are empty.
pub fn arguments(params: &mut Params) -> Result<Map<String, Value>, RpcError> {
    match params.remove("arguments") {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(arguments)) => Ok(arguments),
        Some(_) => Err(RpcError::invalid_params(
            "params.arguments must be an object",
        )),
    }
}

/// What a call's state is bound to: a digest of its parameters; `None` if the call carries no state.
pub struct StateBinding(Option<String>);

/// Takes the answers and the state of earlier rounds from a call's parameters, or from the stateful adapter.
///
/// The digest covers all parameters. It is therefore computed only for a call that carries state, or whose function
/// may return some (`remembers`); within a session no state is carried.
pub fn inputs(
    engine: &Engine,
    call: &mut Call,
    remembers: bool,
) -> Result<(InputAnswers, StateBinding), RpcError> {
    let (mut inputs, sealed) = InputAnswers::take(&mut call.params)?;
    if let Some(gathered) = call.inputs.take() {
        return Ok((gathered, StateBinding(None)));
    }
    let bound = remembers || sealed.is_some();
    let digest = bound.then(|| digest_of(&call.method, &call.params));
    if let (Some(sealed), Some(digest)) = (sealed, &digest) {
        let who = call.context.who.agent_id().as_str();
        inputs.state = Some(engine.sealer.open(&sealed, who, digest)?);
    }
    Ok((inputs, StateBinding(digest)))
}

/// Turns a question into an outcome, if the client has declared that it supports it.
pub fn ask(
    engine: &Engine,
    call: &Call,
    binding: &StateBinding,
    question: InputRequired,
) -> Result<CallOutcome, RpcError> {
    askable(&call.context.capabilities, &question)?;
    let who = call.context.who.agent_id().as_str();
    let sealed = match (&question.state, &binding.0) {
        (Some(state), Some(digest)) => Some(engine.sealer.seal(state.clone(), who, digest)),
        (Some(_), None) if call.context.session.is_none() => return Err(undeclared_error(call)),
        _ => None,
    };
    Ok(CallOutcome::Ask(question, sealed))
}

/// Checks that the client has declared support for this question.
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

/// State that is bound to no call could be used with any other call, so it is never sent.
fn undeclared_error(call: &Call) -> RpcError {
    let reference = reference::next();
    let method = &call.method;
    tracing::error!(
        %reference,
        %method,
        "a tool returned state without declaring it in its row"
    );
    RpcError::internal(&reference)
}

/// Returns the call's context for the tool's function.
pub fn surroundings(call: &Call, reference: Arc<str>, inputs: InputAnswers) -> Cx {
    let who = &call.context.who;
    let caller = Caller {
        agent: who.agent_id().shared(),
        name: who.name().clone(),
        policy: who.preset().as_str(),
        space: who.space().clone(),
        reach: who.reach().clone(),
        has_answer_schemas: !has_brief_entries(who.policy()),
        session: call.context.session.clone(),
    };
    Cx::new(reference, caller)
        .with_client(call.context.capabilities.clone(), inputs)
        .with_disconnect(call.context.disconnect.clone())
}
