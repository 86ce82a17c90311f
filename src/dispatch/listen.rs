//! Who hears of which change: `subscriptions/listen`, and the same loop on behalf of a session's stream.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio::sync::{broadcast, mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::{
    call::{Call, Outcome, Reply},
    engine::Engine,
    interests::{Due, Interests},
    task_methods::declared,
    task_watch::TaskWatch,
};
use crate::protocol::{Implementation, Notification, RpcError, key};
use crate::registry::{Catalog, ListChange, ResourceSource, SessionLog};

/// A stream's notifications wait here for its reader; beyond these they stay in the cursors.
const QUEUED: usize = 16;

/// One listener hears of so many tasks; more are refused.
const MAX_TASKS: usize = 256;

/// Something that a listener wanted to hear of.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A resource has changed, up to this revision.
    Updated(String, u64),
    /// A list has changed.
    List(ListChange),
    /// A task has changed.
    Task(Notification),
    /// Something was logged outside of any call.
    Logged(SessionLog),
}

impl Event {
    /// The notification on the wire.
    pub fn to_notification(&self) -> Notification {
        match self {
            Self::Updated(uri, revision) => Notification::resource_updated(uri, *revision),
            Self::Task(note) => note.clone(),
            Self::List(ListChange::Tools) => {
                Notification::new("notifications/tools/list_changed", json!({}))
            }
            Self::List(ListChange::Prompts) => {
                Notification::new("notifications/prompts/list_changed", json!({}))
            }
            Self::List(ListChange::Resources) => {
                Notification::new("notifications/resources/list_changed", json!({}))
            }
            Self::Logged(log) => Notification::message(log.level, log.logger, &log.data),
        }
    }
}

/// Waits for what its interests name.
pub struct Listener {
    interests: Arc<Interests>,
    source: Option<(Arc<dyn ResourceSource>, watch::Receiver<u64>)>,
    lists: Option<broadcast::Receiver<ListChange>>,
    tasks: Option<TaskWatch>,
    logs: Option<(Arc<str>, broadcast::Receiver<SessionLog>)>,
    stop: watch::Receiver<bool>,
}

impl Listener {
    /// A listener on a catalog, until `stop` turns true.
    pub fn new(catalog: &Catalog, interests: Arc<Interests>, stop: watch::Receiver<bool>) -> Self {
        let source = catalog
            .resources()
            .map(|source| (source.clone(), source.bell()));
        Self {
            interests,
            source,
            lists: catalog.list_changes(),
            tasks: None,
            logs: None,
            stop,
        }
    }

    /// The same with tasks beside.
    #[must_use]
    pub fn with_tasks(mut self, tasks: TaskWatch) -> Self {
        self.tasks = Some(tasks);
        self
    }

    /// The same for a session, which hears what is logged for it, of whatever severity.
    #[must_use]
    pub fn with_logs(mut self, catalog: &Catalog, session: &str) -> Self {
        let logs = catalog.session_logs();
        self.logs = logs.map(|logs| (session.into(), logs));
        self
    }

    /// The next event; `None` when the server stops.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            let due = match &mut self.source {
                Some((source, bell)) => {
                    bell.mark_unchanged();
                    self.interests.due(source.as_ref(), Instant::now())
                }
                None => Due::Nothing,
            };
            let wake = match due {
                Due::Tell(uri, revision) => return Some(Event::Updated(uri, revision)),
                Due::At(when) => Some(when),
                Due::Nothing => None,
            };
            tokio::select! {
                () = rung(self.source.as_mut().map(|(_, bell)| bell)) => {}
                () = self.interests.changed() => {}
                () = reached(wake) => {}
                change = changed(self.lists.as_mut()) => return Some(Event::List(change)),
                note = stirred(self.tasks.as_mut()) => return Some(Event::Task(note)),
                log = logged(self.logs.as_mut()) => return Some(Event::Logged(log)),
                () = stopped(&mut self.stop) => return None,
            }
        }
    }
}

async fn rung(bell: Option<&mut watch::Receiver<u64>>) {
    let rings = match bell {
        Some(bell) => bell.changed().await.is_ok(),
        None => false,
    };
    if !rings {
        std::future::pending::<()>().await;
    }
}

async fn reached(when: Option<Instant>) {
    match when {
        Some(when) => sleep_until(when).await,
        None => std::future::pending().await,
    }
}

async fn changed(lists: Option<&mut broadcast::Receiver<ListChange>>) -> ListChange {
    match lists {
        Some(lists) => told(lists).await,
        None => std::future::pending().await,
    }
}

async fn logged(logs: Option<&mut (Arc<str>, broadcast::Receiver<SessionLog>)>) -> SessionLog {
    let Some((session, logs)) = logs else {
        return std::future::pending().await;
    };
    loop {
        let log = told(logs).await;
        if log.session == *session {
            return log;
        }
    }
}

/// The next one; whoever missed some is told of the next that is still there.
async fn told<T: Clone>(channel: &mut broadcast::Receiver<T>) -> T {
    use broadcast::error::RecvError;
    loop {
        match channel.recv().await {
            Ok(told) => return told,
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return std::future::pending().await,
        }
    }
}

async fn stirred(tasks: Option<&mut TaskWatch>) -> Notification {
    match tasks {
        Some(tasks) => tasks.next().await,
        None => std::future::pending().await,
    }
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // A sender that is gone is a server that is gone.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// What a client may ask to hear of.
struct Filter {
    tools: bool,
    prompts: bool,
    resources: bool,
    uris: Vec<String>,
    tasks: Vec<String>,
}

impl Filter {
    fn read(params: &Map<String, Value>) -> Result<Self, RpcError> {
        let Some(Value::Object(asked)) = params.get("notifications") else {
            return Err(RpcError::invalid_params(
                "subscriptions/listen needs params.notifications, an object",
            ));
        };
        let flag = |name: &str| match asked.get(name) {
            None => Ok(false),
            Some(Value::Bool(wanted)) => Ok(*wanted),
            Some(_) => Err(RpcError::invalid_params(format!("{name} is true or false"))),
        };
        Ok(Self {
            tools: flag("toolsListChanged")?,
            prompts: flag("promptsListChanged")?,
            resources: flag("resourcesListChanged")?,
            uris: texts(asked, "resourceSubscriptions")?,
            tasks: texts(asked, "taskIds")?,
        })
    }

    /// Keeps what the server can honour.
    fn honour(&mut self, catalog: &Catalog) {
        let offered = catalog.capabilities();
        self.tools &= offered.lists_change;
        self.prompts &= offered.lists_change && offered.prompts;
        self.resources &= offered.lists_change && offered.resources;
        self.uris.retain(|uri| {
            catalog
                .resources()
                .is_some_and(|source| source.can_watch(uri))
        });
    }

    fn lets_pass(&self, event: &Event) -> bool {
        match event {
            Event::Updated(..) | Event::Task(_) => true,
            Event::List(ListChange::Tools) => self.tools,
            Event::List(ListChange::Prompts) => self.prompts,
            Event::List(ListChange::Resources) => self.resources,
            // Log messages belong to the stream of a request (2026-07-28, server/utilities/logging).
            Event::Logged(_) => false,
        }
    }

    fn acknowledgement(&self) -> Notification {
        let mut honoured = Map::new();
        for (name, wanted) in [
            ("toolsListChanged", self.tools),
            ("promptsListChanged", self.prompts),
            ("resourcesListChanged", self.resources),
        ] {
            if wanted {
                honoured.insert(name.to_owned(), json!(true));
            }
        }
        for (name, wanted) in [
            ("resourceSubscriptions", &self.uris),
            ("taskIds", &self.tasks),
        ] {
            if !wanted.is_empty() {
                honoured.insert(name.to_owned(), json!(wanted));
            }
        }
        Notification::new(
            "notifications/subscriptions/acknowledged",
            json!({ "notifications": honoured }),
        )
    }
}

/// A list of texts in the filter; absent is empty.
fn texts(asked: &Map<String, Value>, name: &str) -> Result<Vec<String>, RpcError> {
    let wrong = || RpcError::invalid_params(format!("{name} is an array of strings"));
    let Some(list) = asked.get(name) else {
        return Ok(Vec::new());
    };
    let texts = list.as_array().ok_or_else(wrong)?.iter();
    let texts = texts.map(|text| text.as_str().map(str::to_owned));
    texts.collect::<Option<_>>().ok_or_else(wrong)
}

/// The tasks that a filter names, and the filter without those that there are not for this agent.
fn tasks(engine: &Engine, call: &Call, filter: &mut Filter) -> Result<Option<TaskWatch>, RpcError> {
    if filter.tasks.is_empty() {
        return Ok(None);
    }
    if !engine.catalog.capabilities().tasks {
        filter.tasks.clear();
        return Ok(None);
    }
    declared(call)?;
    if filter.tasks.len() > MAX_TASKS {
        let words = format!("one listener hears of at most {MAX_TASKS} tasks");
        return Err(RpcError::invalid_params(words));
    }
    let agent = call.context.who.agent_id().as_str();
    let ids = filter.tasks.drain(..).collect();
    let (watch, honoured) = TaskWatch::new(&engine.tasks, agent, &ids);
    filter.tasks = honoured;
    Ok(Some(watch))
}

/// The result with which the server ends a subscription; the client listens again or lets it be.
pub fn ended(id: Value, server: &Implementation) -> Outcome {
    let meta = Map::from_iter([(key::SUBSCRIPTION_ID.to_owned(), id)]);
    let mut result = json!({ "resultType": "complete", "_meta": meta });
    server.sign(&mut result);
    Outcome::Complete(result)
}

/// `subscriptions/listen`: a reply whose result comes when the server ends it.
pub fn listen(engine: &Engine, call: &Call) -> Result<Reply, RpcError> {
    let mut filter = Filter::read(&call.params)?;
    filter.honour(&engine.catalog);
    let interests = Arc::new(Interests::default());
    for uri in &filter.uris {
        interests.add(uri, engine.revision())?;
    }
    let mut listener = Listener::new(&engine.catalog, interests, engine.stop.clone());
    if let Some(tasks) = tasks(engine, call, &mut filter)? {
        listener = listener.with_tasks(tasks);
    }
    let (sender, notes) = mpsc::channel(QUEUED);
    let id = json!(call.id);
    let end = ended(id.clone(), &engine.catalog.server);
    let outcome = Box::pin(run(listener, filter, sender, (id, end)));
    Ok(Reply {
        notes: Some(notes),
        outcome,
    })
}

async fn run(
    mut listener: Listener,
    filter: Filter,
    notes: mpsc::Sender<Notification>,
    (id, end): (Value, Outcome),
) -> Result<Outcome, RpcError> {
    let mark = |note: Notification| note.with_meta(key::SUBSCRIPTION_ID, id.clone());
    let mut open = notes.send(mark(filter.acknowledgement())).await.is_ok();
    while open {
        match listener.next().await {
            Some(event) if !filter.lets_pass(&event) => {}
            Some(event) => open = notes.send(mark(event.to_notification())).await.is_ok(),
            None => break,
        }
    }
    Ok(end)
}
