//! The tasks that a listener wants to hear of: how each stands is told when it changes, and never queued.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use tokio::sync::watch;

use super::{live_task::LiveTask, tasks::Tasks};
use crate::protocol::{Notification, Task, TaskState};

/// Tells how tasks stand.
pub struct TaskWatch {
    bell: watch::Receiver<u64>,
    /// What had something to say when the listener came.
    due: VecDeque<Arc<Task>>,
    /// What runs, and the version of it that the listener knows.
    watched: Vec<(Arc<LiveTask>, u64)>,
}

impl TaskWatch {
    /// Watches those of an agent's tasks that there are, and says which.
    ///
    /// One that has ended, or waits for the client, is told at once: who has just been given its id may
    /// have missed that.
    pub(super) fn new(tasks: &Tasks, agent: &str, ids: &BTreeSet<String>) -> (Self, Vec<String>) {
        let mut watch = Self {
            bell: tasks.bell(),
            due: VecDeque::new(),
            watched: Vec::new(),
        };
        let mut honoured = Vec::new();
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
            if self.bell.changed().await.is_err() {
                return std::future::pending().await;
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
