//! A call that may become a task: answered when it ends soon, else it goes on and its client asks later.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

use super::{
    ended::{Ended, Stop},
    engine::Engine,
    long_call::goes_on,
    reference,
    rounds::askable,
    task_runner::TaskRunner,
    tasks::Maker,
    under_way::UnderWay,
};
use crate::auth::Principal;
use crate::protocol::{ClientCapabilities, RpcError};
use crate::registry::{BoxFuture, LongCall, Question, TaskSupport, Tool};

/// A call whose client knows of tasks, of a tool that may be one.
pub(super) struct Handover {
    pub engine: Arc<Engine>,
    pub tool: Arc<Tool>,
    pub who: Principal,
    pub capabilities: ClientCapabilities,
    /// What the audit and the journal know the call by.
    pub request: Arc<str>,
    pub questions: mpsc::Receiver<Question>,
    /// The job that its work may be in.
    pub long: Option<Arc<LongCall>>,
}

/// What is answered to the call.
pub(super) enum Answered {
    /// How it ended.
    Ended(Ended),
    /// The task that it has become.
    Task(Value),
}

/// How far the call comes before it is decided.
enum Inline {
    Ended(Ended),
    Long,
    Asks(Question),
}

/// What came of the attempt to make a task.
enum Begun {
    Task(Value),
    /// None could be made; here is the work again.
    NoRoom(BoxFuture<Ended>),
}

impl Handover {
    /// Answers with the end of the work if it comes in time, else with a task.
    ///
    /// What is there at once makes no task: a wrong argument is said at once, and what the tool asks by
    /// ending is asked before (SEP-2663: rounds of input first). A tool that asks while it runs is a
    /// task from then on, because only a task can wait.
    pub(super) async fn answer(mut self, mut work: BoxFuture<Ended>) -> Answered {
        let question = match self.inline(&mut work).await {
            Inline::Ended(ended) => return Answered::Ended(ended),
            Inline::Long => None,
            Inline::Asks(question) => Some(question),
        };
        let (tell, told) = oneshot::channel();
        // In a task of its own: a client that goes meanwhile must not leave a task that nobody runs.
        tokio::spawn(self.go_on(work, question, tell));
        match told.await {
            Ok(Begun::Task(created)) => Answered::Task(created),
            Ok(Begun::NoRoom(work)) => Answered::Ended(work.await),
            Err(_) => Answered::Ended(Err(Stop::Rpc(RpcError::internal(&reference::next())))),
        }
    }

    async fn inline(&mut self, work: &mut BoxFuture<Ended>) -> Inline {
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
                        // A tool that is gone wants no answer.
                        Err(error) => drop(question.answers.send(Err(error))),
                    }
                }
                ended = &mut *work => return Inline::Ended(ended),
            }
        }
    }

    /// What the task ends with if this server ends before: the job, if its work is in one by now.
    fn job(&self) -> Option<Value> {
        let long = self.long.as_ref().filter(|long| long.has_begun())?;
        Some(self.engine.kept(&goes_on(&self.engine, &self.who, long)))
    }

    /// Makes the task, says so, and runs it. Without room for one the work goes back, and what it asks
    /// is asked by ending the call.
    async fn go_on(
        self,
        work: BoxFuture<Ended>,
        question: Option<Question>,
        tell: oneshot::Sender<Begun>,
    ) {
        let _under_way = UnderWay::begin(&self.engine.under_way);
        let maker = Maker {
            agent: self.who.agent_id().as_str(),
            tool: self.tool.name(),
            request: &self.request,
            job: self.job(),
        };
        let Some(live) = self.engine.tasks.create(maker).await else {
            drop((question, self.questions));
            // A client that is gone takes its work with it.
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
            // Nobody knows its id.
            live.cancel.notify_one();
        }
        runner.run(work).await;
    }
}
