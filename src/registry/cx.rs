//! What a call carries besides its arguments: progress, log messages, what the client can do and has answered.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;

use super::{
    error::Result,
    long_call::LongCall,
    resource::{BoxFuture, Viewer},
};
use crate::config::{Reach, Risk};
use crate::protocol::{
    ClientCapabilities, InputRequired, Inputs, Level, Notification, RpcError, Tool,
};

/// Reports of progress that come closer together are left out: a tool may count as fast as it likes.
const BETWEEN_REPORTS: Duration = Duration::from_millis(20);

/// Who calls, as far as a tool may know; it decides nothing by it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// The agent's id.
    pub agent: Arc<str>,
    /// The agent's name.
    pub name: Arc<str>,
    /// Its policy's preset.
    pub policy: &'static str,
    /// The space that it is kept in; `*` is the whole box.
    pub space: Arc<str>,
    /// What of the box there is for it.
    pub reach: Reach,
    /// The session that it calls from, in the stateful revisions; not the id that its client sends.
    pub session: Option<Arc<str>>,
}

impl Caller {
    /// The same as who looks at resources.
    pub fn viewer(&self) -> Viewer {
        Viewer {
            agent: self.agent.clone(),
            reach: self.reach.clone(),
        }
    }
}

/// A question of a call that goes on while it waits. Dropped unanswered, it is asked by ending the call.
#[derive(Debug)]
pub struct Question {
    /// What is asked.
    pub asked: InputRequired,
    /// Where the answers go, by key, or why it cannot be asked.
    pub answers: oneshot::Sender<std::result::Result<Map<String, Value>, RpcError>>,
}

/// One call's surroundings. Cheap to clone.
#[derive(Clone)]
pub struct Cx {
    inner: Arc<Inner>,
}

struct Inner {
    reference: Arc<str>,
    caller: Caller,
    capabilities: ClientCapabilities,
    inputs: Inputs,
    notes: Option<mpsc::Sender<Notification>>,
    progress_token: Option<Value>,
    log_level: Option<Level>,
    hang_up: Option<Arc<Notify>>,
    /// What was said last of how far the call has come.
    reported: Mutex<Reported>,
    desk: Option<mpsc::Sender<Question>>,
    /// The keys whose answers, given with the call, were handed out: asked again, they are asked anew.
    handed_out: Mutex<BTreeSet<String>>,
    offers: Option<Box<Offers>>,
    looks: Option<Box<Looks>>,
    long: Option<Arc<LongCall>>,
}

/// Calls a tool that only looks, as its caller would: nothing where there is none for it, else what it says.
type Looks = dyn Fn(&'static str, Map<String, Value>) -> BoxFuture<Option<Said>> + Send + Sync;

/// What a tool said: its answer's text, or that of its failure.
pub type Said = std::result::Result<String, String>;

/// A tool that the caller may propose to call.
#[derive(Debug, Clone)]
pub struct Offer {
    /// What `tools/list` would show of it.
    pub definition: Tool,
    /// Its class.
    pub risk: Risk,
}

type Offers = dyn Fn() -> Vec<Offer> + Send + Sync;

struct Reported {
    progress: f64,
    at: Option<Instant>,
}

impl Cx {
    /// The surroundings of a call that nobody listens to.
    pub fn new(reference: Arc<str>, caller: Caller) -> Self {
        Self {
            inner: Arc::new(Inner {
                reference,
                caller,
                capabilities: ClientCapabilities::default(),
                inputs: Inputs::default(),
                notes: None,
                progress_token: None,
                log_level: None,
                hang_up: None,
                reported: Mutex::new(Reported {
                    progress: f64::NEG_INFINITY,
                    at: None,
                }),
                desk: None,
                handed_out: Mutex::default(),
                offers: None,
                looks: None,
                long: None,
            }),
        }
    }

    /// The same with what the client can do and what it answered to earlier rounds.
    #[must_use]
    pub fn with_client(self, capabilities: ClientCapabilities, inputs: Inputs) -> Self {
        self.change(|inner| {
            inner.capabilities = capabilities;
            inner.inputs = inputs;
        })
    }

    /// The same with somebody who listens.
    #[must_use]
    pub fn with_listener(
        self,
        notes: mpsc::Sender<Notification>,
        progress_token: Option<Value>,
        log_level: Option<Level>,
    ) -> Self {
        self.change(|inner| {
            inner.notes = Some(notes);
            inner.progress_token = progress_token;
            inner.log_level = log_level;
        })
    }

    /// The same with somebody who takes questions while the call goes on.
    #[must_use]
    pub fn with_desk(self, desk: mpsc::Sender<Question>) -> Self {
        self.change(|inner| inner.desk = Some(desk))
    }

    /// The same with a client that can come back later.
    #[must_use]
    pub fn with_hang_up(self, hang_up: Option<Arc<Notify>>) -> Self {
        self.change(|inner| inner.hang_up = hang_up)
    }

    /// The same with what the caller may propose, should a tool want to know.
    #[must_use]
    pub fn with_offers(self, offers: impl Fn() -> Vec<Offer> + Send + Sync + 'static) -> Self {
        self.change(|inner| inner.offers = Some(Box::new(offers)))
    }

    /// The same with tools that it may look with.
    #[must_use]
    pub fn with_looks<F>(
        self,
        looks: impl Fn(&'static str, Map<String, Value>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Option<Said>> + Send + 'static,
    {
        let looks = move |tool, arguments| Box::pin(looks(tool, arguments)) as BoxFuture<_>;
        self.change(|inner| inner.looks = Some(Box::new(looks)))
    }

    /// The same for a call that may go on as a job.
    #[must_use]
    pub fn with_long_call(self, long: Option<Arc<LongCall>>) -> Self {
        self.change(|inner| inner.long = long)
    }

    fn change(mut self, edit: impl FnOnce(&mut Inner)) -> Self {
        // Nobody else holds it while it is being put together.
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            edit(inner);
        }
        self
    }

    /// What the audit and the journal know this call by.
    pub fn reference(&self) -> &Arc<str> {
        &self.inner.reference
    }

    /// Who calls.
    pub fn caller(&self) -> &Caller {
        &self.inner.caller
    }

    /// The tools that the caller may propose to call.
    pub fn offers(&self) -> Vec<Offer> {
        let offers = self.inner.offers.as_ref();
        offers.map_or_else(Vec::new, |offers| offers())
    }

    /// What a tool says that only looks: as the caller would be answered, or refused. Nothing where the caller has no
    /// such tool.
    pub async fn look(&self, tool: &'static str, arguments: Map<String, Value>) -> Option<Said> {
        let looks = self.inner.looks.as_ref()?;
        looks(tool, arguments).await
    }

    /// The job that this call may go on as, if its tool says that its calls take long.
    pub fn long_call(&self) -> Option<&Arc<LongCall>> {
        self.inner.long.as_ref()
    }

    /// What the client can do.
    pub fn capabilities(&self) -> &ClientCapabilities {
        &self.inner.capabilities
    }

    /// What the client answered to earlier rounds of this call.
    pub fn inputs(&self) -> &Inputs {
        &self.inner.inputs
    }

    /// The answers to a question, by key: those that came with the call, or else what the client answers
    /// while the call waits as a task. A client that can do neither is asked by ending the call; it
    /// then calls again with the answers.
    ///
    /// # Errors
    /// When the client must be asked by ending the call, or cannot be asked: to be passed on.
    pub async fn ask(&self, question: InputRequired) -> Result<Map<String, Value>> {
        if let Some(answers) = self.given(&question) {
            return Ok(answers);
        }
        let Some(desk) = &self.inner.desk else {
            return Err(question.into());
        };
        let (answers, answered) = oneshot::channel();
        let asked = question.clone();
        let taken = desk.send(Question { asked, answers }).await.is_ok();
        match answered.await {
            Ok(answers) if taken => Ok(answers?),
            _ => Err(question.into()),
        }
    }

    /// What came with the call, if that is everything and was not handed out before.
    fn given(&self, question: &InputRequired) -> Option<Map<String, Value>> {
        let mut handed_out = lock(&self.inner.handed_out);
        let answers = question.requests.keys().map(|key| {
            let answer = self.inner.inputs.responses.get(key);
            let answer = answer.filter(|_| !handed_out.contains(key));
            answer.map(|answer| (key.clone(), answer.clone()))
        });
        let answers: Map<String, Value> = answers.collect::<Option<_>>()?;
        handed_out.extend(answers.keys().cloned());
        Some(answers)
    }

    /// Says how far the call has come, if the client asked to hear it. What does not rise is not sent, nor what
    /// comes too soon after the last one, unless it is the end (2026-07-28, progress).
    pub async fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let (Some(notes), Some(token)) = (&self.inner.notes, &self.inner.progress_token) else {
            return;
        };
        if !self.is_news(progress, total) {
            return;
        }
        // A client that is gone hears nothing; the call goes on or is dropped by its class.
        let _ = notes
            .send(Notification::progress(token, progress, total, message))
            .await;
    }

    fn is_news(&self, progress: f64, total: Option<f64>) -> bool {
        let mut last = lock(&self.inner.reported);
        let now = Instant::now();
        let soon = last
            .at
            .is_some_and(|at| now.duration_since(at) < BETWEEN_REPORTS);
        if progress <= last.progress || soon && total != Some(progress) {
            return false;
        }
        *last = Reported {
            progress,
            at: Some(now),
        };
        true
    }

    /// Closes the response's stream, so that the client comes back for the rest later and holds no connection
    /// while the call goes on (SEP-1699). Does nothing where a client could not come back: in the stateless
    /// era, in sessions before 2025-11-25, and where it takes no stream.
    pub fn close_stream(&self) {
        if let Some(hang_up) = &self.inner.hang_up {
            hang_up.notify_one();
        }
    }

    /// Sends a log message, if the client asked for this severity.
    pub async fn log(&self, level: Level, logger: &str, data: &Value) {
        let (Some(notes), Some(least)) = (&self.inner.notes, self.inner.log_level) else {
            return;
        };
        if level >= least {
            let _ = notes.send(Notification::message(level, logger, data)).await;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    async fn sent(reports: &[(u64, f64)]) -> Vec<f64> {
        let (sender, mut notes) = mpsc::channel(1_000);
        let caller = Caller::default();
        let cx = Cx::new("r".into(), caller).with_listener(sender, Some(json!("t")), None);
        for (after_ms, progress) in reports {
            tokio::time::sleep(Duration::from_millis(*after_ms)).await;
            cx.progress(*progress, Some(100.0), None).await;
        }
        drop(cx);
        let mut heard = Vec::new();
        while let Some(note) = notes.recv().await {
            assert_eq!(note.params["progressToken"], "t");
            heard.push(note.params["progress"].as_f64().unwrap());
        }
        heard
    }

    #[tokio::test(start_paused = true)]
    async fn p4_progress_rises_and_is_no_flood_but_its_end_is_told() {
        assert_eq!(
            sent(&[(0, 0.0), (50, 50.0), (50, 100.0)]).await,
            [0.0, 50.0, 100.0]
        );
        assert_eq!(
            sent(&[(0, 2.0), (50, 1.0), (50, 2.0), (50, 3.0)]).await,
            [2.0, 3.0]
        );
        let many: Vec<(u64, f64)> = (1..=100).map(|n| (1, f64::from(n))).collect();
        let heard = sent(&many).await;
        assert!(heard.len() <= 6, "{heard:?}");
        assert_eq!(heard.last(), Some(&100.0));
        assert!(heard.is_sorted_by(|a, b| a < b), "{heard:?}");
    }
}
