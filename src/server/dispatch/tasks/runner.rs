//! Runs the work of a task: forwards its questions, records its end, and ends it early if necessary.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep, sleep_until};

use super::call_end::{CallEnd, StopReason};
use super::live_task::LiveTask;
use super::long_call::continued_result;
use super::table::{abandoned, expired};
use crate::dispatch::elicitation::askable;
use crate::dispatch::engine::Engine;
use crate::dispatch::reference;
use gatewren_base::sys::now_ms;
use gatewren_gate::auth::Principal;
use gatewren_wire::protocol::{ClientCapabilities, RpcError, TaskState};
use gatewren_wire::registry::{BoxFuture, CallQuestion, LongCall};

/// When the server stops, interruptible work has this long to end by itself with a result: its command is killed
/// earlier, and the output so far is the result.
const STOP_GRACE: Duration = Duration::from_secs(20);

/// What a task needs while it runs.
pub(in crate::dispatch) struct TaskRunner {
    pub engine: Arc<Engine>,
    pub live: Arc<LiveTask>,
    /// The agent that it belongs to; the task ends when the agent's access ends.
    pub who: Principal,
    /// The capabilities that the client declared with the call.
    pub capabilities: ClientCapabilities,
    pub questions: mpsc::Receiver<CallQuestion>,
    /// Whether the work must not be left half done: it is then ended only while it waits for the client.
    pub outlives: bool,
    /// The job that the work may be in: it continues when the server stops, and is cancelled with the task.
    pub long: Option<Arc<LongCall>>,
}

/// Why a task is ended from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TaskStopReason {
    /// Its client cancelled it, or its agent's access ended.
    Cancelled,
    /// It expired.
    Expired,
    /// The server stops.
    Stopped,
}

impl TaskStopReason {
    /// The final state for this reason.
    fn state(self) -> TaskState {
        match self {
            Self::Cancelled => TaskState::Cancelled,
            Self::Expired => expired(),
            Self::Stopped => abandoned(),
        }
    }
}

impl TaskRunner {
    /// Runs the work to its end or ends it, and records the final state. Dropping the work kills what it runs.
    pub(in crate::dispatch) async fn run(mut self, work: BoxFuture<CallEnd>) {
        let _counted = self.engine.metrics.task();
        let mut running = JoinSet::new();
        running.spawn(work);
        let end = self.watch(&mut running).await;
        running.shutdown().await;
        self.engine.tasks.end(&self.live, end).await;
    }

    /// Puts a question to the client; if it cannot be put, the tool gets the error.
    pub(in crate::dispatch) fn put(&self, question: CallQuestion) {
        match askable(&self.capabilities, &question.asked) {
            // The send fails only if the tool is gone, and then needs no answer.
            Err(error) => drop(question.answers.send(Err(error))),
            Ok(()) => {
                if self.live.put(question) {
                    self.engine.tasks.notify_change();
                }
            }
        }
    }

    async fn watch(&mut self, running: &mut JoinSet<CallEnd>) -> TaskState {
        let mut interruption = pin!(wait_for_interruption(
            self.engine.clone(),
            self.live.clone(),
            self.who.clone(),
            self.long.clone(),
        ));
        let (mut interrupted, mut given_up) = (false, None);
        loop {
            let why = tokio::select! {
                biased;
                Some(ended) = running.join_next() => {
                    return state_of(&self.engine, ended, given_up);
                }
                why = &mut interruption, if !interrupted => why,
                Some(question) = self.questions.recv() => {
                    // A question that comes after the interruption cannot be answered any more.
                    if !interrupted {
                        self.put(question);
                    }
                    continue;
                }
            };
            interrupted = true;
            if let Some(long) = self.long.as_ref().filter(|long| long.has_begun()) {
                if why != TaskStopReason::Stopped {
                    long.cancel();
                    given_up = Some(why);
                } else if long.deliver_id() {
                    let result = continued_result(&self.engine, &self.who, long);
                    return TaskState::Completed(self.engine.complete_for_storage(&result));
                }
            } else if !self.outlives || self.live.withdraw() {
                return why.state();
            }
        }
    }
}

/// Waits for a reason to end the task from outside.
async fn wait_for_interruption(
    engine: Arc<Engine>,
    live: Arc<LiveTask>,
    who: Principal,
    long: Option<Arc<LongCall>>,
) -> TaskStopReason {
    let left = Duration::from_millis(live.expires_ms.saturating_sub(now_ms()));
    tokio::select! {
        () = live.cancel.notified() => TaskStopReason::Cancelled,
        () = engine.wait_for_access_end(&who) => TaskStopReason::Cancelled,
        () = sleep_until(Instant::now() + left) => TaskStopReason::Expired,
        () = wait_for_stop(&engine, &live, long) => TaskStopReason::Stopped,
    }
}

async fn wait_for_stop(engine: &Engine, live: &LiveTask, long: Option<Arc<LongCall>>) {
    let _ = engine.stopping().wait_for(|stop| *stop).await;
    if !live.waits() && !long.is_some_and(|long| long.has_begun()) {
        sleep(STOP_GRACE).await;
    }
}

/// The final state of a task after its work has ended. If the work failed while it was being ended, the state is
/// that of the interruption.
fn state_of(
    engine: &Engine,
    ended: Result<CallEnd, JoinError>,
    given_up: Option<TaskStopReason>,
) -> TaskState {
    match (ended, given_up) {
        (Ok(Ok(result)), Some(why)) if result.failed => why.state(),
        (ended, _) => end_of(engine, ended),
    }
}

fn end_of(engine: &Engine, ended: Result<CallEnd, JoinError>) -> TaskState {
    match ended {
        Ok(Ok(result)) => TaskState::Completed(engine.complete_for_storage(&result)),
        Ok(Err(StopReason::Rpc(error))) => TaskState::failed(&error),
        Ok(Err(StopReason::Propose(_))) => broken("a tool that proposes has become a task"),
        Ok(Err(StopReason::Ask(_))) => {
            broken("a tool asked by ending its call, which was a task by then")
        }
        Err(_) => broken("a tool panicked; the previous log line has the location"),
    }
}

fn broken(why: &'static str) -> TaskState {
    let reference = reference::next();
    tracing::error!(%reference, "{why}");
    TaskState::failed(&RpcError::internal(&reference))
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use schemars::JsonSchema;
    use serde::Deserialize;
    use serde_json::{Map, json};
    use tokio::sync::{Notify, watch};

    use super::super::runner::*;
    use super::super::table::TaskLimits;
    use crate::dispatch::call::{Call, CallContext, CallOutcome};
    use gatewren_base::config::Preset;
    use gatewren_wire::protocol::{Implementation, InputRequired, Params, RequestId};
    use gatewren_wire::registry::{Answer, Catalog, Cx, Interruption, Result, Risk, Toolset};

    /// Calls wait for this.
    type Gate = Notify;

    /// Does nothing.
    #[derive(Deserialize, JsonSchema)]
    struct Nothing {}

    async fn waits(gate: Arc<Gate>, Nothing {}: Nothing, _: Cx) -> Result<Answer> {
        gate.notified().await;
        Ok(Answer::text("done"))
    }

    async fn asks(_: Arc<Gate>, Nothing {}: Nothing, cx: Cx) -> Result<Answer> {
        let asked = InputRequired::new().ask("key", "roots/list", json!({}));
        cx.ask(asked).await?;
        Ok(Answer::text("answered"))
    }

    async fn breaks(gate: Arc<Gate>, Nothing {}: Nothing, _: Cx) -> Result<Answer> {
        gate.notified().await;
        panic!("as it is meant to")
    }

    async fn asks_late(gate: Arc<Gate>, Nothing {}: Nothing, _: Cx) -> Result<Answer> {
        gate.notified().await;
        Err(Interruption::Ask(InputRequired::new()))
    }

    struct House {
        engine: Arc<Engine>,
        gate: Arc<Gate>,
        stop: watch::Sender<bool>,
        revoked: watch::Sender<bool>,
    }

    #[rustfmt::skip]
    fn fixture() -> House {
        let gate = Arc::new(Notify::new());
        let mut catalog = Catalog::new(Implementation { name: "t".into(), title: None, version: "1".into(), profile: None });
        let tools = Toolset::new(gate.clone())
            .answering("reads", Risk::Read, waits).offers_task()
            .answering("writes", Risk::Write, waits).offers_task()
            .answering("asks", Risk::Write, asks).offers_task()
            .answering("breaks", Risk::Read, breaks).requires_task()
            .answering("asks_late", Risk::Read, asks_late).requires_task();
        catalog.add(tools).unwrap();
        let stop = watch::Sender::new(false);
        let revoked = watch::Sender::new(false);
        let revocation = revoked.clone();
        let engine = Engine::new(catalog, None, &[0; 32], stop.subscribe(), TaskLimits::TWO);
        let engine = engine.with_principal_updates(Arc::new(move |_| {
            let mut revoked = revocation.subscribe();
            Box::pin(async move {
                let _ = revoked.wait_for(|revoked| *revoked).await;
                None
            })
        }));
        House { engine: Arc::new(engine), gate, stop, revoked }
    }

    impl House {
        async fn call(&self, tool: &str) -> std::result::Result<CallOutcome, RpcError> {
            let able =
                json!({ "roots": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } });
            let call = Call {
                id: RequestId::Number(1),
                method: "tools/call".into(),
                params: Params::from(Map::from_iter([
                    ("name".into(), json!(tool)),
                    ("arguments".into(), json!({})),
                ])),
                context: CallContext {
                    who: Principal::without_token("a", Preset::Admin),
                    address: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
                    session: None,
                    capabilities: ClientCapabilities::new(able.as_object().unwrap().clone()),
                    log_level: None,
                    accepts_notifications: false,
                    disconnect: None,
                    client_request: None,
                },
                inputs: None,
                held: None,
            };
            self.engine.answer(call).outcome.await
        }

        /// Calls a tool and returns the id of the task that the call becomes.
        async fn create_task(&self, tool: &str) -> String {
            let Ok(CallOutcome::Complete(result)) = self.call(tool).await else {
                panic!("a result was due");
            };
            assert_eq!(result["resultType"], "task", "{result}");
            result["taskId"].as_str().unwrap().to_owned()
        }

        fn cancel(&self, id: &str) {
            self.engine.tasks.live("a", id).unwrap().cancel.notify_one();
        }

        /// Waits for the final state, without any other event.
        async fn end(&self, id: &str) -> TaskState {
            let mut changes = self.engine.tasks.watch_changes();
            loop {
                let state = self.engine.tasks.find("a", id).unwrap().state.clone();
                if state.is_terminal() {
                    return state;
                }
                changes.changed().await.unwrap();
            }
        }
    }

    fn message(state: TaskState) -> String {
        let TaskState::Failed(error) = state else {
            panic!("it has not failed: {state:?}");
        };
        error["message"].as_str().unwrap().to_owned()
    }

    #[tokio::test(start_paused = true)]
    async fn what_must_not_be_left_half_done_is_cancelled_only_while_it_waits_for_the_client() {
        let fixture = fixture();
        let (id, asking) = (
            fixture.create_task("writes").await,
            fixture.create_task("asks").await,
        );
        fixture.cancel(&id);
        fixture.cancel(&asking);
        assert_eq!(fixture.end(&asking).await, TaskState::Cancelled);
        assert!(
            !fixture
                .engine
                .tasks
                .find("a", &id)
                .unwrap()
                .state
                .is_terminal()
        );
        fixture.gate.notify_one();
        assert_eq!(fixture.end(&id).await.name(), "completed");
    }

    #[tokio::test(start_paused = true)]
    async fn what_can_be_dropped_is_cancelled_at_once() {
        let fixture = fixture();
        let id = fixture.create_task("reads").await;
        fixture.cancel(&id);
        assert_eq!(fixture.end(&id).await, TaskState::Cancelled);
        fixture.engine.idle().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_tool_that_breaks_or_asks_too_late_leaves_a_failed_task() {
        let fixture = fixture();
        for tool in ["breaks", "asks_late"] {
            let id = fixture.create_task(tool).await;
            fixture.gate.notify_one();
            assert!(
                message(fixture.end(&id).await).contains("internal error"),
                "{tool}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_ends_what_waits_at_once_and_what_reads_after_its_grace() {
        let fixture = fixture();
        let (id, asking) = (
            fixture.create_task("reads").await,
            fixture.create_task("asks").await,
        );
        let begun = Instant::now();
        fixture.stop.send_replace(true);
        assert!(message(fixture.end(&asking).await).contains("server stopped"));
        assert!(begun.elapsed() < STOP_GRACE);
        assert!(message(fixture.end(&id).await).contains("server stopped"));
        assert!(begun.elapsed() >= STOP_GRACE);
        fixture.engine.idle().await;
    }

    #[tokio::test(start_paused = true)]
    async fn time_and_expulsion_end_a_task() {
        let fixture = fixture();
        let id = fixture.create_task("reads").await;
        let live = fixture.engine.tasks.live("a", &id).unwrap();
        fixture.engine.idle().await;
        assert!(message(live.task().state.clone()).contains("ttlMs"));
        let id = fixture.create_task("reads").await;
        fixture.revoked.send_replace(true);
        assert_eq!(fixture.end(&id).await, TaskState::Cancelled);
    }

    #[tokio::test(start_paused = true)]
    async fn without_room_a_question_is_asked_by_ending_the_call() {
        let fixture = fixture();
        let kept = [
            fixture.create_task("reads").await,
            fixture.create_task("reads").await,
        ];
        let asked = fixture.call("asks").await.unwrap();
        assert!(matches!(asked, CallOutcome::Ask(..)), "{asked:?}");
        let inline = fixture.call("reads");
        fixture.gate.notify_waiters();
        for id in kept {
            fixture.end(&id).await;
        }
        let (inline, ()) = tokio::join!(inline, async {
            sleep(Duration::from_mins(2)).await;
            fixture.gate.notify_one();
        });
        // It took longer than the lifetime of a task.
        assert!(matches!(inline, Ok(CallOutcome::Called(_))), "{inline:?}");
    }
}
