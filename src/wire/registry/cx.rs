//! The context of a call: progress, log messages, the client's capabilities and its answers.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;

use super::{
    caller::Caller,
    error::{Result, ToolError},
    long_call::LongCall,
    resource::BoxFuture,
    scheduled_call::{CallCheck, CheckedCall, ScheduledCall},
};
use crate::protocol::{
    ClientCapabilities, InputAnswers, InputRequired, LogSeverity, Notification, RpcError,
    ToolDefinition,
};
use gatewren_base::config::Risk;
use gatewren_base::sys::lock;

/// Progress reports at a shorter interval are dropped: a tool may report as often as it likes.
const BETWEEN_REPORTS: Duration = Duration::from_millis(20);

/// A question of a call that continues to run while it waits. If it is dropped unanswered, it is asked by ending
/// the call.
#[derive(Debug)]
pub struct CallQuestion {
    /// The question.
    pub asked: InputRequired,
    /// The sender of the answers, by key, or of the error if the question cannot be asked.
    pub answers: oneshot::Sender<std::result::Result<Map<String, Value>, RpcError>>,
}

/// The context of one call. Cheap to clone.
#[derive(Clone)]
pub struct Cx {
    inner: Arc<Inner>,
}

struct Inner {
    reference: Arc<str>,
    caller: Caller,
    capabilities: ClientCapabilities,
    inputs: InputAnswers,
    notes: Option<mpsc::Sender<Notification>>,
    progress_token: Option<Value>,
    log_level: Option<LogSeverity>,
    disconnect: Option<Arc<Notify>>,
    /// The last reported progress.
    last_report: Mutex<ProgressReport>,
    questions: Option<mpsc::Sender<CallQuestion>>,
    /// The keys for which the call's own answers were used already: if asked again, they are put to the client
    /// again.
    handed_out: Mutex<BTreeSet<String>>,
    offers: Option<Box<Offers>>,
    looks: Option<Box<Looks>>,
    call_check: Option<Box<CallCheck>>,
    /// Whether the call was judged as one on the host.
    is_on_host: bool,
    /// Whether the caller may call the tool that this one includes.
    may_include: bool,
    /// Whether the tool was called by its name in the `StartOS` dialect.
    is_in_dialect: bool,
    long: Option<Arc<LongCall>>,
}

/// Calls a read-only tool on behalf of the caller; returns `None` if the caller has no such tool.
type Looks =
    dyn Fn(&'static str, Map<String, Value>) -> BoxFuture<Option<TextOutcome>> + Send + Sync;

/// The outcome of a tool: the text of its answer, or of its failure.
pub type TextOutcome = std::result::Result<String, String>;

/// A tool that the caller may propose to call.
#[derive(Debug, Clone)]
pub struct ProposableTool {
    /// Its definition in `tools/list`.
    pub definition: ToolDefinition,
    /// Its class.
    pub risk: Risk,
}

type Offers = dyn Fn() -> Vec<ProposableTool> + Send + Sync;

struct ProgressReport {
    progress: f64,
    at: Option<Instant>,
}

impl Cx {
    /// The context of a call without a listening client.
    pub fn new(reference: Arc<str>, caller: Caller) -> Self {
        Self {
            inner: Arc::new(Inner {
                reference,
                caller,
                capabilities: ClientCapabilities::default(),
                inputs: InputAnswers::default(),
                notes: None,
                progress_token: None,
                log_level: None,
                disconnect: None,
                last_report: Mutex::new(ProgressReport {
                    progress: f64::NEG_INFINITY,
                    at: None,
                }),
                questions: None,
                handed_out: Mutex::default(),
                offers: None,
                looks: None,
                call_check: None,
                is_on_host: false,
                may_include: false,
                is_in_dialect: false,
                long: None,
            }),
        }
    }

    /// Sets the client's capabilities and its answers to earlier rounds.
    #[must_use]
    pub fn with_client(self, capabilities: ClientCapabilities, inputs: InputAnswers) -> Self {
        self.change(|inner| {
            inner.capabilities = capabilities;
            inner.inputs = inputs;
        })
    }

    /// Sets the receiver of notifications.
    #[must_use]
    pub fn with_listener(
        self,
        notes: mpsc::Sender<Notification>,
        progress_token: Option<Value>,
        log_level: Option<LogSeverity>,
    ) -> Self {
        self.change(|inner| {
            inner.notes = Some(notes);
            inner.progress_token = progress_token;
            inner.log_level = log_level;
        })
    }

    /// Sets the receiver of questions that are asked while the call runs.
    #[must_use]
    pub fn with_questions(self, questions: mpsc::Sender<CallQuestion>) -> Self {
        self.change(|inner| inner.questions = Some(questions))
    }

    /// Sets the handle for a client that can reconnect later.
    #[must_use]
    pub fn with_disconnect(self, disconnect: Option<Arc<Notify>>) -> Self {
        self.change(|inner| inner.disconnect = disconnect)
    }

    /// Sets the function that returns what the caller may propose.
    #[must_use]
    pub fn with_offers(
        self,
        offers: impl Fn() -> Vec<ProposableTool> + Send + Sync + 'static,
    ) -> Self {
        self.change(|inner| inner.offers = Some(Box::new(offers)))
    }

    /// Sets whether the call was judged as one on the host, because its container has the rights of the host's root.
    #[must_use]
    pub fn with_host_rights(self, is_on_host: bool) -> Self {
        self.change(|inner| inner.is_on_host = is_on_host)
    }

    /// Whether the call was judged as one on the host. Otherwise it must not run in a container with the rights of the
    /// host's root.
    pub fn is_on_host(&self) -> bool {
        self.inner.is_on_host
    }

    /// Sets whether the caller may call, without being asked, the tool whose answer is part of this one's.
    #[must_use]
    pub fn with_included(self, may_include: bool) -> Self {
        self.change(|inner| inner.may_include = may_include)
    }

    /// Whether the answer may contain that of the tool which this one includes (`Toolset::includes`).
    pub fn may_include(&self) -> bool {
        self.inner.may_include
    }

    /// Sets whether the tool was called by its name in the `StartOS` dialect.
    #[must_use]
    pub fn with_dialect(self, is_in_dialect: bool) -> Self {
        self.change(|inner| inner.is_in_dialect = is_in_dialect)
    }

    /// Whether the tool was called by its name in the `StartOS` dialect, whose results differ for commands.
    pub fn is_in_dialect(&self) -> bool {
        self.inner.is_in_dialect
    }

    /// Sets the function that calls read-only tools for this call.
    #[must_use]
    pub fn with_looks<F>(
        self,
        looks: impl Fn(&'static str, Map<String, Value>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Option<TextOutcome>> + Send + 'static,
    {
        let looks = move |tool, arguments| Box::pin(looks(tool, arguments)) as BoxFuture<_>;
        self.change(|inner| inner.looks = Some(Box::new(looks)))
    }

    /// Sets the function that checks a call before it is scheduled.
    #[must_use]
    pub fn with_call_check(self, check: Box<CallCheck>) -> Self {
        self.change(|inner| inner.call_check = Some(check))
    }

    /// Checks with the caller's permissions a call that will be made later.
    ///
    /// # Errors
    /// An error for the model that states why the call cannot be scheduled.
    pub async fn check_call(&self, asked: ScheduledCall) -> Result<CheckedCall> {
        match &self.inner.call_check {
            Some(check) => Ok(check(asked).await?),
            None => Err(ToolError::new("this server cannot schedule calls").into()),
        }
    }

    /// Sets the job that the call may continue as.
    #[must_use]
    pub fn with_long_call(self, long: Option<Arc<LongCall>>) -> Self {
        self.change(|inner| inner.long = long)
    }

    fn change(mut self, edit: impl FnOnce(&mut Inner)) -> Self {
        // Not shared yet while it is being built.
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            edit(inner);
        }
        self
    }

    /// The call's id in the audit and the journal.
    pub fn reference(&self) -> &Arc<str> {
        &self.inner.reference
    }

    /// The caller.
    pub fn caller(&self) -> &Caller {
        &self.inner.caller
    }

    /// The tools that the caller may propose to call.
    pub fn offers(&self) -> Vec<ProposableTool> {
        let offers = self.inner.offers.as_ref();
        offers.map_or_else(Vec::new, |offers| offers())
    }

    /// Calls a read-only tool with the caller's permissions, so that it answers or refuses as it would for the
    /// caller. Returns `None` if the caller has no such tool.
    pub async fn look(
        &self,
        tool: &'static str,
        arguments: Map<String, Value>,
    ) -> Option<TextOutcome> {
        let looks = self.inner.looks.as_ref()?;
        looks(tool, arguments).await
    }

    /// The job that this call may continue as, if the tool's calls may take long.
    pub fn long_call(&self) -> Option<&Arc<LongCall>> {
        self.inner.long.as_ref()
    }

    /// The client's capabilities.
    pub fn capabilities(&self) -> &ClientCapabilities {
        &self.inner.capabilities
    }

    /// The client's answers to earlier rounds of this call.
    pub fn inputs(&self) -> &InputAnswers {
        &self.inner.inputs
    }

    /// Returns the answers to a question, by key: those that came with the call, or those that the client gives
    /// while the call waits as a task. For any other client, the question ends the call, and the client calls again
    /// with the answers.
    ///
    /// # Errors
    /// An interruption for the caller to propagate, if the client must be asked by ending the call, or cannot be
    /// asked.
    pub async fn ask(&self, question: InputRequired) -> Result<Map<String, Value>> {
        if let Some(answers) = self.take_answers(&question) {
            return Ok(answers);
        }
        let Some(questions) = &self.inner.questions else {
            return Err(question.into());
        };
        let (answers, answered) = oneshot::channel();
        let asked = question.clone();
        let taken = questions
            .send(CallQuestion { asked, answers })
            .await
            .is_ok();
        match answered.await {
            Ok(answers) if taken => Ok(answers?),
            _ => Err(question.into()),
        }
    }

    /// The answers that came with the call, if they are complete and were not used before.
    fn take_answers(&self, question: &InputRequired) -> Option<Map<String, Value>> {
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

    /// Reports progress, if the client asked for it. A report that does not increase is dropped, and so is one that
    /// follows the last one too soon, unless it is the final one (2026-07-28, progress).
    pub async fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let (Some(notes), Some(token)) = (&self.inner.notes, &self.inner.progress_token) else {
            return;
        };
        if !self.is_due(progress, total) {
            return;
        }
        // Fails if the client has disconnected; its class decides whether the call continues or is dropped.
        let _ = notes
            .send(Notification::progress(token, progress, total, message))
            .await;
    }

    fn is_due(&self, progress: f64, total: Option<f64>) -> bool {
        let mut last = lock(&self.inner.last_report);
        let now = Instant::now();
        let soon = last
            .at
            .is_some_and(|at| now.duration_since(at) < BETWEEN_REPORTS);
        if progress <= last.progress || soon && total != Some(progress) {
            return false;
        }
        *last = ProgressReport {
            progress,
            at: Some(now),
        };
        true
    }

    /// Closes the response's stream, so that the client reconnects later for the rest and holds no connection while
    /// the call runs (SEP-1699). Does nothing if the client could not reconnect: in the stateless era, in sessions
    /// before 2025-11-25, and if it accepts no stream.
    pub fn close_stream(&self) {
        if let Some(disconnect) = &self.inner.disconnect {
            disconnect.notify_one();
        }
    }

    /// Whether the client asked for log messages, of any severity.
    pub fn wants_logs(&self) -> bool {
        self.inner.notes.is_some() && self.inner.log_level.is_some()
    }

    /// Sends a log message, if the client asked for this severity.
    pub async fn log(&self, level: LogSeverity, logger: &str, data: &Value) {
        let (Some(notes), Some(least)) = (&self.inner.notes, self.inner.log_level) else {
            return;
        };
        if level >= least {
            let _ = notes.send(Notification::message(level, logger, data)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    async fn send_reports(reports: &[(u64, f64)]) -> Vec<f64> {
        let (sender, mut notes) = mpsc::channel(1_000);
        let caller = Caller::default();
        let cx = Cx::new("r".into(), caller).with_listener(sender, Some(json!("t")), None);
        for (after_ms, progress) in reports {
            tokio::time::sleep(Duration::from_millis(*after_ms)).await;
            cx.progress(*progress, Some(100.0), None).await;
        }
        drop(cx);
        let mut received = Vec::new();
        while let Some(note) = notes.recv().await {
            assert_eq!(note.params["progressToken"], "t");
            received.push(note.params["progress"].as_f64().unwrap());
        }
        received
    }

    #[tokio::test(start_paused = true)]
    async fn p4_progress_rises_and_is_no_flood_but_its_end_is_told() {
        assert_eq!(
            send_reports(&[(0, 0.0), (50, 50.0), (50, 100.0)]).await,
            [0.0, 50.0, 100.0]
        );
        assert_eq!(
            send_reports(&[(0, 2.0), (50, 1.0), (50, 2.0), (50, 3.0)]).await,
            [2.0, 3.0]
        );
        let many: Vec<(u64, f64)> = (1..=100).map(|n| (1, f64::from(n))).collect();
        let received = send_reports(&many).await;
        assert!(received.len() <= 6, "{received:?}");
        assert_eq!(received.last(), Some(&100.0));
        assert!(received.is_sorted_by(|a, b| a < b), "{received:?}");
    }
}
