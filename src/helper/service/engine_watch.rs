//! Watches the engines: which containers may have changed, and whether an engine came or went.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use gatewren_base::config::RuntimeKind;
use gatewren_wire::operations::{ContainerRef, OperationRefusal};

use super::definition_watch::ChangedDefinitions;
use super::inner_docker::{MAX_INNER_DAEMONS, possible_daemons};
use crate::context::helper_context::HelperContext;
use crate::context::inner_containers::InnerDaemon;
use crate::engines::{AnswerWatch, ChangedContainer, EngineApi, EngineEvents};

/// How long changes are collected after the first: a start of a container is several events.
const COLLECT_TIME: Duration = Duration::from_millis(50);

/// The same for the Podman of a user, who could send events without end: each costs a look at containers.
const USER_COLLECT_TIME: Duration = Duration::from_millis(250);

/// The pauses between two tries to reach an engine: the first and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How often containers of LXC are looked at for a Docker inside that is not watched yet.
const LOOK_FOR_INNER: Duration = Duration::from_secs(15);

/// How long a Docker inside LXC waits after a report until its next one, and the most containers in a report; others wait
/// for the next look at all. It could report without end, and each report makes the caller look.
const INNER_PAUSE: Duration = Duration::from_secs(1);
const MAX_INNER_NAMES: usize = 64;

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

    /// Begins to drop the kept answers about containers that have events; `None` for a user's Podman, whose answers are
    /// not kept.
    fn watch_answers(&self, helper: &HelperContext) -> Option<AnswerWatch> {
        match self {
            Self::OfRoot(kind) => Some(helper.containers.engines.kept(*kind).watch()),
            Self::OfUser(_) => None,
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
        if helper.policy.now().serves(RuntimeKind::DockerInLxc) {
            tasks.spawn(watch_inner(Arc::clone(helper), sender));
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
            let mut answers = engine.watch_answers(&helper);
            loop {
                let reference = |changed: &ChangedContainer| {
                    if let Some(answers) = &answers {
                        answers.note(changed);
                    }
                    engine.reference(changed.name.as_deref()?)
                };
                let collected = collect(&mut events, engine.collect_time(), reference).await;
                let Some((names, is_whole)) = collected else {
                    break;
                };
                let changed = if is_whole {
                    ChangedDefinitions::Some(names)
                } else {
                    ChangedDefinitions::All
                };
                let sent = match sender.try_send(changed) {
                    Err(TrySendError::Full(changed)) => {
                        // Events are not read meanwhile, so no answer is certain.
                        drop(answers.take());
                        let sent = sender.send(changed).await.is_ok();
                        answers = engine.watch_answers(&helper);
                        sent
                    }
                    sent => sent.is_ok(),
                };
                if !sent {
                    return;
                }
            }
            drop(answers);
            tracing::info!(?engine, "the events of an engine ended");
        } else {
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

/// Watches the Docker inside each running container of LXC that has one, the first ones by name.
async fn watch_inner(helper: Arc<HelperContext>, sender: mpsc::Sender<ChangedDefinitions>) {
    let mut watched = BTreeSet::new();
    let mut tasks = JoinSet::new();
    while !sender.is_closed() {
        for daemon in possible_daemons(&helper).await {
            let is_new = watched.len() < MAX_INNER_DAEMONS && !watched.contains(&daemon.outer);
            if is_new && matches!(daemon.socket.exists().await, Ok(true)) {
                watched.insert(daemon.outer.clone());
                tasks.spawn(watch_one(daemon, sender.clone()));
            }
        }
        let until = Instant::now() + LOOK_FOR_INNER;
        loop {
            tokio::select! {
                () = sleep_until(until) => break,
                Some(Ok(ended)) = tasks.join_next() => drop(watched.remove(&ended)),
            }
        }
    }
}

/// Reports changes of the containers of one Docker inside LXC until its events end. Returns the container of LXC. What it
/// reports is never a reason to look at other containers.
async fn watch_one(daemon: InnerDaemon, sender: mpsc::Sender<ChangedDefinitions>) -> ContainerRef {
    let place = daemon.outer.name();
    let reference =
        |changed: &ChangedContainer| ContainerRef::inside(place, changed.name.as_deref()?).ok();
    if let Ok(mut events) = daemon.api.events().await {
        while let Some((names, _)) = collect(&mut events, COLLECT_TIME, reference).await {
            let names: BTreeSet<ContainerRef> = names.into_iter().take(MAX_INNER_NAMES).collect();
            let has_names = !names.is_empty();
            if has_names && sender.send(ChangedDefinitions::Some(names)).await.is_err() {
                break;
            }
            sleep(INNER_PAUSE).await;
        }
    }
    daemon.outer
}

/// Waits for an event, and collects what follows at once; `None` at the end of the events. Returns the containers that may
/// have changed, and whether they are all.
async fn collect(
    events: &mut EngineEvents,
    time: Duration,
    reference: impl Fn(&ChangedContainer) -> Option<ContainerRef>,
) -> Option<(BTreeSet<ContainerRef>, bool)> {
    let mut names = BTreeSet::new();
    let mut is_whole = true;
    let mut add = |changed: ChangedContainer| {
        let name = reference(&changed);
        is_whole &= name.is_some();
        names.extend(name);
    };
    add(events.next().await.ok()??);
    let until = Instant::now() + time;
    while let Ok(Ok(Some(changed))) = timeout_at(until, events.next()).await {
        add(changed);
    }
    // An end of the events is met again at the next call, not before the changes are told.
    sleep_until(until).await;
    Some((names, is_whole))
}
