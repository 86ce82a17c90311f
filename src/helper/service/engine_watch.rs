//! Watches the engines: which containers may have changed, and whether an engine came or went.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use gatewren_base::config::RuntimeKind;
use gatewren_wire::operations::{ContainerRef, OperationRefusal};

use super::definition_watch::ChangedDefinitions;
use crate::context::helper_context::HelperContext;
use crate::engines::{ChangedContainer, EngineApi, EngineEvents};

/// How long changes are collected after the first: a start of a container is several events.
const COLLECT_TIME: Duration = Duration::from_millis(50);

/// The same for the Podman of a user, who could send events without end: each costs a look at containers.
const USER_COLLECT_TIME: Duration = Duration::from_millis(250);

/// The pauses between two tries to reach an engine: the first and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The most changes that wait for the reader. More wait at the engine.
const MAX_WAITING: usize = 16;

/// An engine whose containers are watched.
#[derive(Debug)]
enum WatchedEngine {
    /// The engine of a runtime, run by root.
    OfRoot(RuntimeKind),
    /// The Podman of a user.
    OfUser(String),
}

impl WatchedEngine {
    fn api(&self, helper: &HelperContext) -> Result<EngineApi, OperationRefusal> {
        match self {
            Self::OfRoot(kind) => helper.containers.engines.api(*kind),
            Self::OfUser(user) => helper.containers.engines.api_of_user(user),
        }
    }

    fn reference(&self, name: &str) -> Option<ContainerRef> {
        match self {
            Self::OfRoot(kind) => ContainerRef::of(*kind, name).ok(),
            Self::OfUser(user) => ContainerRef::of_user(user, name).ok(),
        }
    }

    fn collect_time(&self) -> Duration {
        match self {
            Self::OfRoot(_) => COLLECT_TIME,
            Self::OfUser(_) => USER_COLLECT_TIME,
        }
    }
}

/// The watch on all engines that are served; ends when dropped.
#[derive(Debug)]
pub struct EngineWatch {
    changes: mpsc::Receiver<ChangedDefinitions>,
    /// Ends the tasks when dropped.
    _tasks: JoinSet<()>,
}

impl EngineWatch {
    /// Begins to watch the engines that the policy serves now.
    pub fn begin(helper: &Arc<HelperContext>) -> Self {
        let (sender, changes) = mpsc::channel(MAX_WAITING);
        let mut tasks = JoinSet::new();
        let policy = helper.policy.now();
        let of_root = [RuntimeKind::Docker, RuntimeKind::Podman].map(WatchedEngine::OfRoot);
        let of_root = of_root.into_iter().filter(|engine| match engine {
            WatchedEngine::OfRoot(kind) => policy.serves(*kind),
            WatchedEngine::OfUser(_) => false,
        });
        let of_users = policy.podman_users.iter().cloned();
        for engine in of_root.chain(of_users.map(WatchedEngine::OfUser)) {
            tasks.spawn(watch(Arc::clone(helper), engine, sender.clone()));
        }
        Self {
            changes,
            _tasks: tasks,
        }
    }

    /// Waits for the next change. Cancel safe. Without an engine there is none.
    pub async fn next(&mut self) -> ChangedDefinitions {
        match self.changes.recv().await {
            Some(changed) => changed,
            None => std::future::pending().await,
        }
    }
}

/// Reports changes of one engine's containers. An event says only which container to look at; all containers are looked
/// at when the engine came or went, since events in between are lost.
async fn watch(
    helper: Arc<HelperContext>,
    engine: WatchedEngine,
    sender: mpsc::Sender<ChangedDefinitions>,
) {
    let mut pause = FIRST_PAUSE;
    let mut was_away = false;
    loop {
        let opened = match engine.api(&helper) {
            Ok(api) => api.events().await.ok(),
            Err(_) => None,
        };
        let is_away = opened.is_none();
        if !(is_away && was_away) && sender.send(ChangedDefinitions::All).await.is_err() {
            return;
        }
        was_away = is_away;
        if let Some(mut events) = opened {
            pause = FIRST_PAUSE;
            while let Some(changed) = collect(&mut events, &engine).await {
                if sender.send(changed).await.is_err() {
                    return;
                }
            }
            tracing::info!(?engine, "the events of an engine ended");
        } else {
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

/// Waits for an event, and collects what follows at once; `None` at the end of the events.
async fn collect(events: &mut EngineEvents, engine: &WatchedEngine) -> Option<ChangedDefinitions> {
    let mut names = BTreeSet::new();
    let mut all = false;
    let mut add = |changed: ChangedContainer| {
        let name = changed.name.and_then(|name| engine.reference(&name));
        all |= name.is_none();
        names.extend(name);
    };
    add(events.next().await.ok()??);
    let until = Instant::now() + engine.collect_time();
    while let Ok(Ok(Some(changed))) = timeout_at(until, events.next()).await {
        add(changed);
    }
    // An end of the events is met again at the next call, not before the changes are told.
    sleep_until(until).await;
    Some(if all {
        ChangedDefinitions::All
    } else {
        ChangedDefinitions::Some(names)
    })
}
