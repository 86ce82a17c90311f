//! The tasks that a listener is subscribed to: state changes are reported as they happen, and never queued.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use tokio::sync::watch;

use super::live_task::LiveTask;
use crate::dispatch::changes::task::ChangeWatch;
use crate::dispatch::engine::Engine;
use gatewren_wire::protocol::{Notification, Task, TaskState};

/// Reports state changes of tasks.
pub struct TaskWatch {
    task_changes: watch::Receiver<u64>,
    /// Tasks to report when the listener starts.
    due: VecDeque<Arc<Task>>,
    /// The running tasks, each with the version that the listener knows.
    watched: Vec<(Arc<LiveTask>, u64)>,
    /// The changes that wait for the owner.
    changes: Option<ChangeWatch>,
}

impl TaskWatch {
    /// Watches the tasks among these ids that exist for the agent, and returns their ids.
    ///
    /// A task that has ended or waits for the client is reported at once: a client that has just received the id
    /// may have missed that state.
    pub(in crate::dispatch) fn new(
        engine: &Engine,
        agent: &str,
        ids: &BTreeSet<String>,
    ) -> (Self, Vec<String>) {
        let tasks = &engine.tasks;
        let mut watch = Self {
            task_changes: tasks.watch_changes(),
            due: VecDeque::new(),
            watched: Vec::new(),
            changes: None,
        };
        let mut honoured = Vec::new();
        if let Some((changes, found)) = ChangeWatch::new(engine, agent, ids.iter()) {
            watch.changes = Some(changes);
            honoured = found;
        }
        for id in ids {
            if let Some(live) = tasks.live(agent, id) {
                let seen = u64::from(live.task().state == TaskState::Working);
                watch.watched.push((live, seen));
            } else if let Ok(task) = tasks.find(agent, id) {
                watch.due.push_back(task);
            } else {
                continue;
            }
            honoured.push(id.clone());
        }
        (watch, honoured)
    }

    /// Waits for the next state change and returns its notification.
    pub async fn next(&mut self) -> Notification {
        loop {
            self.task_changes.mark_unchanged();
            if let Some(task) = self.due.pop_front().or_else(|| self.next_changed()) {
                return Notification::new("notifications/tasks", task.to_detailed());
            }
            if let Some(task) = self.changes.as_mut().and_then(ChangeWatch::take_ended) {
                return Notification::new("notifications/tasks", task.to_detailed());
            }
            let decided = async {
                match &mut self.changes {
                    Some(changes) => changes.wait_for_change().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                changed = self.task_changes.changed() => {
                    if changed.is_err() {
                        return std::future::pending().await;
                    }
                }
                () = decided => {}
            }
        }
    }

    fn next_changed(&mut self) -> Option<Arc<Task>> {
        let mut watched = self.watched.iter_mut().enumerate();
        let (at, version, task) = watched.find_map(|(at, (live, seen))| {
            let (version, task) = live.newer_than(*seen)?;
            Some((at, version, task))
        })?;
        if task.state.is_terminal() {
            self.watched.swap_remove(at);
        } else if let Some((_, seen)) = self.watched.get_mut(at) {
            *seen = version;
        }
        Some(task)
    }
}
