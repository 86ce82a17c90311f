//! The loop of a worker that runs calls which the vault asks for, some at once, until the server stops.

use std::collections::HashMap;
use std::time::Duration;

use tokio::task::{Id as TaskId, JoinSet};

use super::engine::Engine;
use gatewren_store::vault::{Vault, VaultError};

/// The maximum number of calls that a worker runs at once; others wait.
const AT_ONCE: usize = 4;

/// Finds the calls that are due. `Item` identifies a running one.
pub(super) trait VaultWorker {
    /// What a running call is about.
    type Item;

    /// What the worker reads, for the log.
    const READS: &'static str;

    /// The maximum time between two checks, because not everything that makes a call due sends a notification.
    const LOOK: Duration;

    /// Starts the calls that are due. Returns the time until the next check, if no notification arrives before.
    fn start_due(
        &mut self,
        running: &mut RunningItems<Self::Item>,
    ) -> impl Future<Output = Result<Duration, VaultError>> + Send;
}

/// The running calls of a worker.
pub(super) struct RunningItems<T> {
    tasks: JoinSet<()>,
    items: HashMap<TaskId, T>,
}

impl<T> RunningItems<T> {
    /// Whether another call may start now.
    pub(super) fn has_room(&self) -> bool {
        self.items.len() < AT_ONCE
    }

    /// Whether one of the running calls is like this.
    pub(super) fn any(&self, is_like_this: impl Fn(&T) -> bool) -> bool {
        self.items.values().any(is_like_this)
    }

    /// Starts a call.
    pub(super) fn start(&mut self, item: T, work: impl Future<Output = ()> + Send + 'static) {
        let task = self.tasks.spawn(work);
        self.items.insert(task.id(), item);
    }

    /// Waits until a call ends; waits forever while none runs.
    async fn wait_for_one(&mut self) {
        match self.tasks.join_next_with_id().await {
            Some(ended) => {
                let id = ended.map_or_else(|broken| broken.id(), |(id, ())| id);
                self.items.remove(&id);
            }
            None => std::future::pending().await,
        }
    }
}

/// Runs the worker until the server begins to stop, and then waits for the calls that run.
pub(super) async fn run_until_stop<W: VaultWorker>(engine: &Engine, vault: &Vault, mut worker: W) {
    let mut running = RunningItems {
        tasks: JoinSet::new(),
        items: HashMap::new(),
    };
    // Schedules are counted with the inbox, because most of them are approved there.
    let mut changes = vault.changes().watch_inbox();
    let mut agents = vault.agents().changes();
    let mut stop = engine.stopping();
    loop {
        changes.mark_unchanged();
        agents.mark_unchanged();
        let pause = worker.start_due(&mut running).await;
        let pause = pause.unwrap_or_else(|cause| {
            tracing::error!(%cause, "cannot read {}", W::READS);
            W::LOOK
        });
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => break,
            _ = changes.changed() => {}
            _ = agents.changed() => {}
            () = running.wait_for_one() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
    // The shutdown waits for these.
    while running.tasks.join_next().await.is_some() {}
}
