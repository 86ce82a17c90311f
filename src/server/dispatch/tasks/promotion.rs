//! A call that may become a task: it is answered directly if it ends soon; otherwise it continues and the client
//! polls.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

use super::call_end::{CallEnd, StopReason};
use super::long_call::continued_result;
use super::runner::TaskRunner;
use super::table::TaskCreator;
use crate::dispatch::elicitation::askable;
use crate::dispatch::engine::Engine;
use crate::dispatch::in_flight::DrainGuard;
use crate::dispatch::reference;
use gatewren_gate::auth::Principal;
use gatewren_wire::protocol::{ClientCapabilities, RpcError};
use gatewren_wire::registry::{BoxFuture, CallQuestion, LongCall, TaskSupport, Tool};

/// A call of a tool that may become a task, from a client that supports tasks.
pub(in crate::dispatch) struct TaskPromotion {
    pub engine: Arc<Engine>,
    pub tool: Arc<Tool>,
    pub who: Principal,
    pub capabilities: ClientCapabilities,
    /// The call's id in the audit and the journal.
    pub request: Arc<str>,
    pub questions: mpsc::Receiver<CallQuestion>,
    /// The job that its work may be in.
    pub long: Option<Arc<LongCall>>,
}

/// The answer to the call.
pub(in crate::dispatch) enum PromotionResult {
    /// The end of the work.
    Ended(CallEnd),
    /// The task that the call has become.
    Task(Value),
}

/// The state of the call when it is decided whether it becomes a task.
enum Inline {
    Ended(CallEnd),
    Long,
    Asks(CallQuestion),
}

/// The result of the attempt to create a task.
enum Begun {
    Task(Value),
    /// No task could be created; the work is returned.
    NoRoom(BoxFuture<CallEnd>),
}

impl TaskPromotion {
    /// Answers with the end of the work if it comes in time, else with a task.
    ///
    /// Work that ends at once does not become a task: errors in arguments are returned directly. Questions that a
    /// tool asks by ending come before a task, too (SEP-2663: rounds of input first). A tool that asks while it
    /// runs becomes a task from then on, because only a task can wait.
    pub(in crate::dispatch) async fn answer(
        mut self,
        mut work: BoxFuture<CallEnd>,
    ) -> PromotionResult {
        let question = match self.inline(&mut work).await {
            Inline::Ended(ended) => return PromotionResult::Ended(ended),
            Inline::Long => None,
            Inline::Asks(question) => Some(question),
        };
        let (tell, told) = oneshot::channel();
        // Spawned as a separate task: if the client disconnects in between, the task that was created must still
        // run.
        tokio::spawn(self.finish_as_task(work, question, tell));
        match told.await {
            Ok(Begun::Task(created)) => PromotionResult::Task(created),
            Ok(Begun::NoRoom(work)) => PromotionResult::Ended(work.await),
            Err(_) => {
                PromotionResult::Ended(Err(StopReason::Rpc(RpcError::internal(&reference::next()))))
            }
        }
    }

    async fn inline(&mut self, work: &mut BoxFuture<CallEnd>) -> Inline {
        let looked = poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await;
        if let Poll::Ready(ended) = looked {
            return Inline::Ended(ended);
        }
        if self.tool.task_support() == TaskSupport::Required {
            return Inline::Long;
        }
        let mut long = pin!(sleep(self.engine.tasks.limits().after));
        loop {
            tokio::select! {
                biased;
                () = &mut long => return Inline::Long,
                Some(question) = self.questions.recv() => {
                    match askable(&self.capabilities, &question.asked) {
                        Ok(()) => return Inline::Asks(question),
                        // The send fails only if the tool is gone, and then needs no answer.
                        Err(error) => drop(question.answers.send(Err(error))),
                    }
                }
                ended = &mut *work => return Inline::Ended(ended),
            }
        }
    }

    /// The result that the task gets if this server ends first: the job, if the work is in one by now.
    fn job(&self) -> Option<Value> {
        let long = self.long.as_ref().filter(|long| long.has_begun())?;
        Some(
            self.engine
                .complete_for_storage(&continued_result(&self.engine, &self.who, long)),
        )
    }

    /// Creates the task, reports it, and runs it. If there is no room, the work is returned, and its questions are
    /// asked by ending the call.
    async fn finish_as_task(
        self,
        work: BoxFuture<CallEnd>,
        question: Option<CallQuestion>,
        tell: oneshot::Sender<Begun>,
    ) {
        let _in_flight = DrainGuard::begin(&self.engine.in_flight);
        let maker = TaskCreator {
            agent: self.who.agent_id().as_str(),
            tool: self.tool.name(),
            request: &self.request,
            job: self.job(),
        };
        let Some(live) = self.engine.tasks.create(maker).await else {
            drop((question, self.questions));
            // If the client is gone, the work is dropped with the message.
            drop(tell.send(Begun::NoRoom(work)));
            return;
        };
        let outlives = self.tool.risk().outlives_its_client();
        let runner = TaskRunner {
            engine: self.engine,
            live: live.clone(),
            who: self.who,
            capabilities: self.capabilities,
            questions: self.questions,
            outlives,
            long: self.long,
        };
        if let Some(question) = question {
            runner.put(question);
        }
        if tell.send(Begun::Task(live.task().to_created())).is_err() {
            // The client never received the id.
            live.cancel.notify_one();
        }
        runner.run(work).await;
    }
}
