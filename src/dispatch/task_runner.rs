//! Watches over a task's work: questions out, its end in, and what ends it before.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep, sleep_until};

use super::{
    engine::Engine,
    live_task::LiveTask,
    reference,
    rounds::askable,
    tasks::{abandoned, expired},
};
use crate::auth::Principal;
use crate::protocol::{ClientCapabilities, InputRequired, RpcError, TaskState};
use crate::registry::{BoxFuture, Question};
use crate::sys::now_ms;

/// When the server stops, what can be ended still has so long to end by itself, and to say how.
const STOP_GRACE: Duration = Duration::from_secs(10);

/// How the work of a call ends.
pub(super) type Ended = Result<Value, Stop>;

/// How it ends without a result.
pub(super) enum Stop {
    /// With a question; the client calls again with the answers.
    Ask(InputRequired),
    /// With an error of the protocol.
    Rpc(RpcError),
}

/// What a task needs while it runs.
pub(super) struct TaskRunner {
    pub engine: Arc<Engine>,
    pub live: Arc<LiveTask>,
    /// Whose it is: it ends when they would no longer come in.
    pub who: Principal,
    /// What the client said it can be asked for when it called.
    pub capabilities: ClientCapabilities,
    pub questions: mpsc::Receiver<Question>,
    /// Half of its work is worse than the whole: it is ended only while it waits for the client.
    pub outlives: bool,
}

impl TaskRunner {
    /// Runs the work to its end, or ends it, and writes down how. To drop the work is to kill what it runs.
    pub(super) async fn run(mut self, work: BoxFuture<Ended>) {
        let mut running = JoinSet::new();
        running.spawn(work);
        let end = self.watch(&mut running).await;
        running.shutdown().await;
        self.engine.tasks.end(&self.live, end).await;
    }

    /// Puts a question to the client; one that cannot be put ends the call in the tool's hands.
    pub(super) fn put(&self, question: Question) {
        match askable(&self.capabilities, &question.asked) {
            // A tool that is gone wants no answer.
            Err(error) => drop(question.answers.send(Err(error))),
            Ok(()) => {
                if self.live.put(question) {
                    self.engine.tasks.ring();
                }
            }
        }
    }

    async fn watch(&mut self, running: &mut JoinSet<Ended>) -> TaskState {
        let interruption = interruption(self.engine.clone(), self.live.clone(), self.who.clone());
        let mut interruption = pin!(interruption);
        let mut interrupted = false;
        loop {
            let state = tokio::select! {
                biased;
                Some(ended) = running.join_next() => return state_of(ended),
                state = &mut interruption, if !interrupted => state,
                Some(question) = self.questions.recv() => {
                    // Nobody can answer what is asked after the interruption.
                    if !interrupted {
                        self.put(question);
                    }
                    continue;
                }
            };
            if !self.outlives || self.live.withdraw() {
                return state;
            }
            interrupted = true;
        }
    }
}

/// What ends a task from outside, and the state that it leads to.
async fn interruption(engine: Arc<Engine>, live: Arc<LiveTask>, who: Principal) -> TaskState {
    let left = Duration::from_millis(live.expires_ms.saturating_sub(now_ms()));
    tokio::select! {
        () = live.cancel.notified() => TaskState::Cancelled,
        () = engine.expelled(&who) => TaskState::Cancelled,
        () = sleep_until(Instant::now() + left) => expired(),
        () = stopped(&engine, &live) => abandoned(),
    }
}

async fn stopped(engine: &Engine, live: &LiveTask) {
    let _ = engine.stopping().wait_for(|stop| *stop).await;
    if !live.waits() {
        sleep(STOP_GRACE).await;
    }
}

fn state_of(ended: Result<Ended, JoinError>) -> TaskState {
    match ended {
        Ok(Ok(result)) => TaskState::Completed(result),
        Ok(Err(Stop::Rpc(error))) => TaskState::failed(&error),
        Ok(Err(Stop::Ask(_))) => {
            broken("a tool asked by ending its call, which was a task by then")
        }
        Err(_) => broken("a tool did not end but break; the line above says where"),
    }
}

fn broken(why: &'static str) -> TaskState {
    let reference = reference::next();
    tracing::error!(reference, "{why}");
    TaskState::failed(&RpcError::internal(&reference))
}
