//! The tasks that a listener wants to hear of: how each stands is told when it changes, and never queued.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use tokio::sync::watch;

use super::{change_task::ChangeWatch, engine::Engine, live_task::LiveTask};
use crate::protocol::{Notification, Task, TaskState};

/// Tells how tasks stand.
pub struct TaskWatch {
    bell: watch::Receiver<u64>,
    /// What had something to say when the listener came.
    due: VecDeque<Arc<Task>>,
    /// What runs, and the version of it that the listener knows.
    watched: Vec<(Arc<LiveTask>, u64)>,
    /// What waits for the owner.
    changes: Option<ChangeWatch>,
}

impl TaskWatch {
    /// Watches those of an agent's tasks that there are, and says which.
    ///
    /// One that has ended, or waits for the client, is told at once: who has just been given its id may
    /// have missed that.
    pub(super) fn new(engine: &Engine, agent: &str, ids: &BTreeSet<String>) -> (Self, Vec<String>) {
        let tasks = &engine.tasks;
        let mut watch = Self {
            bell: tasks.bell(),
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

    /// How one of them stands, when there is something new to say.
    pub async fn next(&mut self) -> Notification {
        loop {
            self.bell.mark_unchanged();
            if let Some(task) = self.due.pop_front().or_else(|| self.changed()) {
                return Notification::new("notifications/tasks", task.to_detailed());
            }
            if let Some(task) = self.changes.as_mut().and_then(ChangeWatch::ended) {
                return Notification::new("notifications/tasks", task.to_detailed());
            }
            let decided = async {
                match &mut self.changes {
                    Some(changes) => changes.rung().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                rung = self.bell.changed() => {
                    if rung.is_err() {
                        return std::future::pending().await;
                    }
                }
                () = decided => {}
            }
        }
    }

    fn changed(&mut self) -> Option<Arc<Task>> {
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
