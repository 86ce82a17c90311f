//! A running task: its state, its open questions, and its cancellation.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value};
use tokio::sync::{Notify, oneshot};

use gatewren_base::sys::{lock, now_ms, rfc3339};
use gatewren_wire::protocol::{InputRequired, RpcError, Task, TaskState};
use gatewren_wire::registry::CallQuestion;

/// The maximum number of questions in the life of a task; further ones fail.
const MAX_ASKED: usize = 256;

/// A task while it runs.
pub(in crate::dispatch) struct LiveTask {
    /// Its id.
    pub id: String,
    /// The agent that it belongs to.
    pub agent: String,
    /// When it expires, in milliseconds since 1970.
    pub expires_ms: u64,
    current: Mutex<CurrentTask>,
    /// Notified when the client cancels the task.
    pub cancel: Notify,
}

/// The state of a task, and what changes with it.
struct CurrentTask {
    task: Arc<Task>,
    /// Incremented with every change.
    version: u64,
    asked: Vec<Asked>,
    /// All keys that were ever used: each key means one question.
    keys: BTreeSet<String>,
}

/// A question that waits for answers: its keys on the wire and in the tool, the open requests, and the answers so
/// far.
struct Asked {
    open: BTreeMap<String, (String, (&'static str, Value))>,
    given: Map<String, Value>,
    answers: oneshot::Sender<Result<Map<String, Value>, RpcError>>,
}

impl LiveTask {
    /// A task that starts running.
    pub(in crate::dispatch) fn new(task: Task, agent: &str, expires_ms: u64) -> Self {
        Self {
            id: task.id.clone(),
            agent: agent.to_owned(),
            expires_ms,
            current: Mutex::new(CurrentTask {
                task: Arc::new(task),
                version: 1,
                asked: Vec::new(),
                keys: BTreeSet::new(),
            }),
            cancel: Notify::new(),
        }
    }

    /// The task in its current state.
    pub(in crate::dispatch) fn task(&self) -> Arc<Task> {
        lock(&self.current).task.clone()
    }

    /// The version and the task, if they are newer than this version.
    pub(in crate::dispatch) fn newer_than(&self, version: u64) -> Option<(u64, Arc<Task>)> {
        let current = lock(&self.current);
        (current.version > version).then(|| (current.version, current.task.clone()))
    }

    /// Puts a question to the client. A key that was used before is renamed on the wire, where a key means one
    /// question for the whole life of the task. Returns false if there are too many questions, or the task has
    /// ended.
    pub(in crate::dispatch) fn put(&self, question: CallQuestion) -> bool {
        let mut current = lock(&self.current);
        let many = current.keys.len() + question.asked.requests.len() > MAX_ASKED;
        if many || current.task.state.is_terminal() {
            return false;
        }
        let mut open = BTreeMap::new();
        for (key, request) in question.asked.requests {
            let wire = current.new_key(&key);
            open.insert(wire, (key, request));
        }
        current.asked.push(Asked {
            open,
            given: Map::new(),
            answers: question.answers,
        });
        current.restate();
        true
    }

    /// Takes answers; answers to questions that are not open are ignored. Returns whether any answer was taken.
    pub(in crate::dispatch) fn answer(&self, responses: Map<String, Value>) -> bool {
        let mut current = lock(&self.current);
        let mut taken = false;
        for (key, response) in responses {
            for asked in &mut current.asked {
                if let Some((tools_key, _)) = asked.open.remove(&key) {
                    asked.given.insert(tools_key, response.clone());
                    taken = true;
                }
            }
        }
        let asked = std::mem::take(&mut current.asked);
        let (whole, partial): (Vec<_>, _) = asked.into_iter().partition(|a| a.open.is_empty());
        current.asked = partial;
        for asked in whole {
            // The send fails only if the tool is gone, and then needs no answer.
            let _ = asked.answers.send(Ok(asked.given));
        }
        if taken {
            current.restate();
        }
        taken
    }

    /// Whether the task waits for the client.
    pub(in crate::dispatch) fn waits(&self) -> bool {
        !lock(&self.current).asked.is_empty()
    }

    /// Withdraws the open questions: later answers are ignored. Returns whether there were any.
    pub(in crate::dispatch) fn withdraw(&self) -> bool {
        let mut current = lock(&self.current);
        let waited = !current.asked.is_empty();
        current.asked.clear();
        waited
    }

    /// Sets the final state. A task that has ended does not change any more.
    pub(in crate::dispatch) fn end(&self, state: TaskState, at_ms: u64) {
        let mut current = lock(&self.current);
        if !current.task.state.is_terminal() {
            current.asked.clear();
            current.set_state(state, at_ms);
        }
    }
}

impl CurrentTask {
    /// Returns the key itself, or the key with a number appended if it was used before.
    fn new_key(&mut self, key: &str) -> String {
        let numbered = (2..).map(|n: u32| format!("{key}-{n}"));
        let mut names = std::iter::once(key.to_owned()).chain(numbered);
        // The iterator is infinite.
        let name = names
            .find(|name| !self.keys.contains(name))
            .unwrap_or_default();
        self.keys.insert(name.clone());
        name
    }

    /// Sets the state to working or waiting, depending on the open questions.
    fn restate(&mut self) {
        // Drop the questions that the tool no longer waits for.
        self.asked.retain(|asked| !asked.answers.is_closed());
        let open = self.asked.iter().flat_map(|asked| &asked.open);
        let requests: BTreeMap<_, _> = open
            .map(|(wire, (_, request))| (wire.clone(), request.clone()))
            .collect();
        let state = if requests.is_empty() {
            TaskState::Working
        } else {
            TaskState::InputRequired(InputRequired {
                requests,
                state: None,
            })
        };
        self.set_state(state, now_ms());
    }

    fn set_state(&mut self, state: TaskState, at_ms: u64) {
        let mut task = Task::clone(&self.task);
        task.state = state;
        task.updated_at = rfc3339(at_ms);
        self.task = Arc::new(task);
        self.version += 1;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::live_task::*;

    type Answers = oneshot::Receiver<Result<Map<String, Value>, RpcError>>;

    fn live() -> LiveTask {
        let task = Task {
            id: "t".into(),
            state: TaskState::Working,
            created_at: String::new(),
            updated_at: String::new(),
            ttl_ms: 1,
        };
        LiveTask::new(task, "a", u64::MAX)
    }

    fn put(live: &LiveTask, keys: &[&str]) -> Answers {
        let ask = |asked: InputRequired, key: &&str| asked.ask(key, "roots/list", json!({}));
        let asked = keys.iter().fold(InputRequired::new(), ask);
        let (answers, answered) = oneshot::channel();
        assert!(live.put(CallQuestion { asked, answers }));
        answered
    }

    fn open(live: &LiveTask) -> Vec<String> {
        match &live.task().state {
            TaskState::InputRequired(asked) => asked.requests.keys().cloned().collect(),
            _ => Vec::new(),
        }
    }

    fn answer(live: &LiveTask, key: &str) -> bool {
        live.answer(Map::from_iter([(key.to_owned(), json!(key))]))
    }

    #[test]
    fn k7_partial_answers_leave_the_rest_open_and_strange_ones_change_nothing() {
        let live = live();
        let mut answered = put(&live, &["a", "b"]);
        assert_eq!(open(&live), ["a", "b"]);
        assert!(!answer(&live, "strange"));
        assert!(answer(&live, "a"));
        assert_eq!(open(&live), ["b"]);
        assert!(!answer(&live, "a"), "it was answered before");
        assert!(answered.try_recv().is_err());
        assert!(answer(&live, "b"));
        assert_eq!(live.task().state, TaskState::Working);
        let given = answered.try_recv().unwrap().unwrap();
        assert_eq!(Value::Object(given), json!({ "a": "a", "b": "b" }));
    }

    #[test]
    fn k7_a_key_means_one_question_for_the_whole_life_of_a_task() {
        let live = live();
        let _first = put(&live, &["a"]);
        answer(&live, "a");
        let mut second = put(&live, &["a"]);
        assert_eq!(open(&live), ["a-2"]);
        assert!(!answer(&live, "a"), "that was the first question");
        assert!(answer(&live, "a-2"));
        let given = second.try_recv().unwrap().unwrap();
        assert_eq!(
            Value::Object(given),
            json!({ "a": "a-2" }),
            "the tool's own key"
        );
    }

    #[test]
    fn two_questions_at_once_are_answered_each_for_itself() {
        let live = live();
        let (mut first, mut second) = (put(&live, &["a"]), put(&live, &["b"]));
        assert_eq!(open(&live), ["a", "b"]);
        assert!(answer(&live, "b"));
        assert!(second.try_recv().is_ok() && first.try_recv().is_err());
        assert!(live.waits() && live.withdraw() && !live.withdraw());
        assert!(!answer(&live, "a"));
    }

    #[test]
    fn a_task_that_asks_without_end_is_stopped() {
        let live = live();
        for n in 0..MAX_ASKED {
            drop(put(&live, &[&n.to_string()]));
        }
        let (answers, _answered) = oneshot::channel();
        let asked = InputRequired::new().ask("more", "roots/list", json!({}));
        assert!(!live.put(CallQuestion { asked, answers }));
    }

    #[test]
    fn k6_a_terminal_state_is_the_last_one() {
        let live = live();
        live.end(TaskState::Cancelled, 0);
        live.end(TaskState::Completed(json!({})), 0);
        assert_eq!(live.task().state, TaskState::Cancelled);
        assert!(live.newer_than(1).is_some() && live.newer_than(2).is_none());
    }
}
