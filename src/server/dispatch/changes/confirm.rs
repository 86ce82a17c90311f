//! Calls that the policy allows only after the person at the client confirms: the first round asks, the next one
//! decides.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use crate::dispatch::call::{Call, CallOutcome, ToolRequest};
use crate::dispatch::elicitation::{StateBinding, ask, askable};
use crate::dispatch::engine::{Engine, OutcomeRecorder};
use crate::dispatch::record::Record;
use gatewren_gate::policy::{CallToConfirm, Confirmation, ConfirmationQuestion, Verdict, question};
use gatewren_wire::protocol::{InputRequired, RpcError};
use gatewren_wire::registry::{Answer, Tool, ToolError};

/// The question's key on the wire.
const KEY: &str = "confirm";

/// The key of the question's id in the state that a round carries.
const STATE: &str = "confirmation";

/// What happens to the call in this round.
pub(in crate::dispatch) enum ConfirmationRound {
    /// The call runs.
    Run(Verdict),
    /// The call ends with the question, or with an error that states why it does not run.
    End(CallOutcome),
    /// The person at the client cannot be asked, for this reason; the owner is asked instead.
    AskOwner(Box<Record>, &'static str),
}

/// Asks the person at the client, or reads their answer. An answer counts only together with the state that was
/// sent with its question, so a model cannot confirm its own call.
pub(in crate::dispatch) async fn confirm(
    engine: &Arc<Engine>,
    call: &Call,
    request: &ToolRequest,
    binding: &StateBinding,
) -> Result<ConfirmationRound, RpcError> {
    let (tool, arguments) = (&request.tool, &request.arguments);
    let context = &call.context;
    let asking = CallToConfirm {
        agent: context.who.agent_id().clone(),
        session: context.session.as_deref().map(str::to_owned),
        tool: tool.name().to_owned(),
        arguments: arguments.clone(),
    };
    let inputs = request.cx.inputs();
    match inputs.state.as_ref().and_then(|state| state.get(STATE)) {
        None => {
            let record = Record::begin(engine, call, request, &Verdict::Confirm).await?;
            // A call with invalid arguments fails without a question.
            if let Err(error) = tool.check_arguments(arguments.clone()) {
                record.refuse(&error.message);
                return Ok(ConfirmationRound::End(refuse(error)));
            }
            let question = match question_of(call, request) {
                Ok(question) => question,
                Err(why) => return Ok(ConfirmationRound::AskOwner(Box::new(record), why)),
            };
            let record = record.waiting();
            let close: OutcomeRecorder = Box::new(move |outcome| record.end(outcome, None));
            match open_question(engine, question, asking, close) {
                Ok(question) => ask(engine, call, binding, question).map(ConfirmationRound::End),
                Err(words) => Ok(ConfirmationRound::End(refuse(words))),
            }
        }
        Some(id) => {
            let id = id.as_str().unwrap_or_default();
            let closed = engine
                .questions
                .close(id, &asking, inputs.responses.get(KEY));
            if closed.is_none() {
                let record = Record::begin(engine, call, request, &Verdict::Confirm);
                record.await?.end("refused", None);
            }
            Ok(decide(tool, closed))
        }
    }
}

/// Returns the question for the person at the client, or the reason why they cannot be asked.
fn question_of(call: &Call, request: &ToolRequest) -> Result<InputRequired, &'static str> {
    let reason = request.reason.as_deref();
    let who = &call.context.who;
    let consent = question(who, &request.tool, &request.arguments, reason);
    let ConfirmationQuestion { message, schema } = consent.ok_or(TOO_LONG)?;
    let params = json!({ "mode": "form", "message": message, "requestedSchema": schema });
    let question = InputRequired::new().ask(KEY, "elicitation/create", params);
    askable(&call.context.capabilities, &question).map_err(|_| CANNOT_ASK)?;
    Ok(question)
}

/// Opens a question; from then on it waits for an answer.
fn open_question(
    engine: &Arc<Engine>,
    question: InputRequired,
    asking: CallToConfirm,
    close: OutcomeRecorder,
) -> Result<InputRequired, ToolError> {
    let timeout = engine.confirm_timeout();
    match engine.questions.open(asking, timeout, close) {
        Ok(id) => {
            tokio::spawn(give_up_in_time(engine.clone(), id.clone(), timeout));
            Ok(question.remember(json!({ STATE: id })))
        }
        Err(close) => {
            close("refused");
            Err(too_many())
        }
    }
}

/// Closes a question that is not answered in time. An answer that arrives at the same moment finds it closed or is
/// too late.
async fn give_up_in_time(engine: Arc<Engine>, id: String, timeout: Duration) {
    let mut stop = engine.stopping();
    let is_late = tokio::select! {
        () = sleep(timeout) => true,
        _ = stop.wait_for(|stop| *stop) => false,
    };
    // If the closure is dropped uncalled, it records the call as cancelled.
    if let Some(close) = engine.questions.discard(&id).filter(|_| is_late) {
        close("timeout");
    }
}

fn decide(tool: &Tool, closed: Option<(OutcomeRecorder, Confirmation)>) -> ConfirmationRound {
    let Some((close, reply)) = closed else {
        return ConfirmationRound::End(refuse(not_open(tool)));
    };
    close(reply.as_str());
    match reply {
        Confirmation::Accepted(permit) => ConfirmationRound::Run(Verdict::Confirmed(permit)),
        Confirmation::Late => ConfirmationRound::End(refuse(not_open(tool))),
        no => ConfirmationRound::End(refuse(declined_error(tool, &no))),
    }
}

fn refuse(error: ToolError) -> CallOutcome {
    CallOutcome::Called(Answer::from(error).into_result())
}

fn declined_error(tool: &Tool, reply: &Confirmation) -> ToolError {
    let name = tool.name();
    let how = match reply {
        Confirmation::Dismissed => "closed the question without an answer",
        Confirmation::Malformed => "sent an invalid answer",
        _ => "did not agree",
    };
    ToolError::new(format!(
        "The person at the client was asked to confirm {name} and {how}. Nothing was done."
    ))
    .hint("Do not call it again unless they ask you to.")
}

fn not_open(tool: &Tool) -> ToolError {
    ToolError::new(format!(
        "This answer belongs to no open question about {}: its time is over, it was already answered, or the \
         server restarted. Nothing was done.",
        tool.name()
    ))
    .hint("Call the tool again to ask again.")
}

fn too_many() -> ToolError {
    ToolError {
        retry: true,
        ..ToolError::new(
            "Too many questions of this agent already wait for the person at the client. Nothing was done.",
        )
    }
}

/// Why the owner is asked if the client declares no forms; connectors of chat services declare none.
const CANNOT_ASK: &str = "This client cannot ask its user (it does not declare form elicitation), so the owner \
                          of the server is asked instead.";

/// Why the owner is asked about a call that is too long to be shown whole in a question.
const TOO_LONG: &str = "The arguments are too long to be shown in full in a question at the client, so the owner \
                        of the server is asked instead.";

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use schemars::JsonSchema;
    use serde::Deserialize;
    use serde_json::Value;
    use tokio::sync::watch;

    use super::super::confirm::*;
    use crate::dispatch::call::CallContext;
    use crate::dispatch::tasks::table::TaskLimits;
    use gatewren_base::config::Preset;
    use gatewren_gate::auth::Principal;
    use gatewren_wire::protocol::{ClientCapabilities, Implementation, RequestId};
    use gatewren_wire::registry::{Catalog, Cx, Result, Risk, Toolset};

    /// Stops something.
    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Stop {
        /// What.
        #[serde(rename = "name")]
        _name: String,
    }

    async fn stop(runs: Arc<AtomicUsize>, _: Stop, _: Cx) -> Result<Answer> {
        runs.fetch_add(1, Ordering::SeqCst);
        Ok(Answer::text("stopped"))
    }

    struct House {
        engine: Arc<Engine>,
        runs: Arc<AtomicUsize>,
        _stop: watch::Sender<bool>,
    }

    fn fixture() -> House {
        let runs = Arc::new(AtomicUsize::new(0));
        let mut catalog = Catalog::new(Implementation {
            name: "t".into(),
            title: None,
            version: "1".into(),
            profile: None,
        });
        let tools = Toolset::new(runs.clone()).answering("stop", Risk::Disrupt, stop);
        catalog.add(tools).unwrap();
        let stop = watch::Sender::new(false);
        let engine = Engine::new(catalog, None, &[0; 32], stop.subscribe(), TaskLimits::TWO);
        House {
            engine: Arc::new(engine),
            runs,
            _stop: stop,
        }
    }

    impl House {
        async fn call(&self, params: Value) -> CallOutcome {
            let able = json!({ "elicitation": {} });
            let who = Principal::without_token("a", Preset::Admin);
            let call = Call {
                id: RequestId::Number(1),
                method: "tools/call".into(),
                params: params.as_object().unwrap().clone().into(),
                context: CallContext {
                    capabilities: ClientCapabilities::new(able.as_object().unwrap().clone()),
                    ..CallContext::of(who, None)
                },
                inputs: None,
                held: None,
            };
            self.engine.answer(call).outcome.await.unwrap()
        }

        /// Returns the sealed state that accompanies the question about this call.
        async fn ask_question(&self) -> String {
            let call = json!({ "name": "stop", "arguments": { "name": "x" } });
            match self.call(call).await {
                CallOutcome::Ask(_, Some(sealed)) => sealed,
                other => panic!("a question was due: {other:?}"),
            }
        }

        async fn confirm_question(&self, state: &str) -> Value {
            let yes = json!({ "action": "accept", "content": { "run": true } });
            let call = json!({
                "name": "stop", "arguments": { "name": "x" },
                "inputResponses": { KEY: yes }, "requestState": state,
            });
            match self.call(call).await {
                CallOutcome::Called(result) => result.to_value(),
                other => panic!("a result was due: {other:?}"),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_runs_before_the_yes_and_nothing_after_the_timeout() {
        let fixture = fixture();
        fixture.engine.set_confirm_timeout(Duration::from_secs(20));
        let state = fixture.ask_question().await;
        assert_eq!(fixture.runs.load(Ordering::SeqCst), 0);
        assert_eq!(fixture.confirm_question(&state).await["isError"], false);
        assert_eq!(fixture.runs.load(Ordering::SeqCst), 1);
        assert_eq!(
            fixture.confirm_question(&state).await["isError"],
            true,
            "it was used"
        );

        let state = fixture.ask_question().await;
        sleep(Duration::from_secs(21)).await;
        assert_eq!(fixture.confirm_question(&state).await["isError"], true);
        assert_eq!(fixture.runs.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn a_question_does_not_keep_the_server_from_its_end() {
        let fixture = fixture();
        fixture.ask_question().await;
        fixture.engine.idle().await;
    }
}
