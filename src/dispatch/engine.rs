//! The engine: one catalog and what answering calls from it takes, shared by every connection.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;

use super::{
    call::{Context, Outcome},
    inbox::{Inbox, InboxLimits},
    interests::Since,
    listing::Listings,
    owner_waits::OwnerWaits,
    results::{self, Caching},
    sealed::Sealer,
    task_store::{MemoryTasks, TaskStore},
    tasks::{TaskLimits, Tasks},
};
use crate::auth::Principal;
use crate::policy::Confirmations;
use crate::protocol::{Level, RpcError, ToolResult, Written};
use crate::registry::{BoxFuture, Catalog, Viewer};
use crate::telemetry::Metrics;
use crate::vault::Vault;

/// Waits until an agent that came in would come in with another policy or reach: it as it would then; `None` when it
/// would no longer come in.
pub type Succession = dyn Fn(Principal) -> BoxFuture<Option<Principal>> + Send + Sync;

/// Writes down what came of a call that waits for a person; dropped, it says that the call was cancelled.
pub(super) type Close = Box<dyn FnOnce(&'static str) + Send>;

/// The first change of a resource after quiet is told at once, further ones so far apart, unless something
/// else is set.
const UPDATE_INTERVAL: Duration = Duration::from_millis(500);

/// Answers calls from one catalog; shared by every connection.
pub struct Engine {
    /// What can be asked for.
    pub catalog: Catalog,
    /// What says in a result who answered.
    pub signature: Written,
    /// Where calls are recorded; fixtures have none.
    pub(super) vault: Option<Vault>,
    /// First pages of `tools/list`.
    pub(super) tool_lists: Listings,
    pub(super) sealer: Sealer,
    /// Where calls and streams are counted.
    pub metrics: Arc<Metrics>,
    /// Turns true when the server stops.
    pub(super) stop: watch::Receiver<bool>,
    /// How many calls of tools are under way, in whatever task.
    pub(super) under_way: watch::Sender<usize>,
    /// The calls that go on after their answer.
    pub(super) tasks: Tasks,
    /// The calls that wait for a person's yes.
    pub(super) questions: Confirmations<Close>,
    /// The calls that wait for the owner's decision.
    pub(super) owner_waits: OwnerWaits,
    /// What agents propose; fixtures have no owner who could approve.
    pub(super) inbox: Option<Inbox>,
    update_interval: Mutex<Duration>,
    succession: Option<Arc<Succession>>,
}

impl Engine {
    /// An engine over a catalog.
    pub fn new(
        catalog: Catalog,
        vault: Option<Vault>,
        seal_key: &[u8; 32],
        stop: watch::Receiver<bool>,
        task_limits: TaskLimits,
    ) -> Self {
        let store: Box<dyn TaskStore> = match &vault {
            Some(vault) => Box::new(vault.clone()),
            None => Box::new(MemoryTasks::default()),
        };
        Self {
            tasks: Tasks::new(store, task_limits),
            update_interval: Mutex::new(UPDATE_INTERVAL),
            succession: None,
            questions: Confirmations::default(),
            owner_waits: OwnerWaits::default(),
            inbox: None,
            signature: catalog.server.signature(),
            catalog,
            vault,
            tool_lists: Listings::default(),
            sealer: Sealer::new(seal_key),
            metrics: Arc::default(),
            stop,
            under_way: watch::Sender::new(0),
        }
    }

    /// From now on a client is told of one resource at most so often; streams that are open keep their pace.
    pub fn set_update_interval(&self, every: Duration) {
        *lock(&self.update_interval) = every;
    }

    pub(super) fn update_interval(&self) -> Duration {
        *lock(&self.update_interval)
    }

    /// From now on calls become tasks so; the tasks that there are keep their time.
    pub fn set_task_limits(&self, limits: TaskLimits) {
        self.tasks.set_limits(limits);
    }

    /// From now on so much may be proposed; what was proposed keeps its time.
    pub fn set_inbox_limits(&self, limits: InboxLimits) {
        if let Some(inbox) = &self.inbox {
            inbox.set_limits(limits);
        }
    }

    /// Keeps what agents propose, and runs what was approved.
    #[must_use]
    pub fn with_inbox(mut self, inbox: Inbox) -> Self {
        self.inbox = Some(inbox);
        self
    }

    /// Ends an agent's tasks when this says that it would no longer come in, and tells it of other tools.
    #[must_use]
    pub fn with_succession(mut self, succession: Arc<Succession>) -> Self {
        self.succession = Some(succession);
        self
    }

    pub(super) fn succession(&self) -> Option<Arc<Succession>> {
        self.succession.clone()
    }

    pub(super) async fn expelled(&self, who: &Principal) {
        let Some(succession) = &self.succession else {
            return std::future::pending().await;
        };
        let mut who = who.clone();
        while let Some(later) = succession(who).await {
            who = later;
        }
    }

    /// Takes away tasks whose time is over, for as long as it runs.
    pub async fn sweep_tasks(&self) {
        /// An expired task is gone for its client at once, and from the disk so soon after.
        const EVERY: Duration = Duration::from_mins(1);
        loop {
            tokio::time::sleep(EVERY).await;
            self.tasks.sweep().await;
        }
    }

    /// The newest revision of the resources that there is for a caller.
    pub fn revision(&self, caller: &Context) -> u64 {
        self.newest(&caller.viewer())
    }

    pub(super) fn newest(&self, viewer: &Viewer) -> u64 {
        let source = self.catalog.resources();
        source.map_or(0, |source| source.newest(viewer))
    }

    /// The newest revision of the state, whoever may see it.
    pub(super) fn newest_of_all(&self) -> Option<u64> {
        let source = self.catalog.resources()?;
        let bell = source.bell();
        let revision = *bell.borrow();
        Some(revision)
    }

    /// From where on a resource is of interest to a caller who asks now.
    pub fn since(&self, caller: &Context, uri: &str) -> Since {
        match self.catalog.resources() {
            Some(source) if source.is_apart(uri) => Since::Apart(source.newest_apart()),
            _ => Since::Revision(self.revision(caller)),
        }
    }

    /// Whether a caller may ask to hear of changes of a resource.
    pub fn can_watch(&self, caller: &Context, uri: &str) -> bool {
        let source = self.catalog.resources();
        source.is_some_and(|source| source.can_watch(&caller.viewer(), uri))
    }

    /// Waits until no call of a tool is under way, also of clients that are gone.
    pub async fn idle(&self) {
        let _ = self
            .under_way
            .subscribe()
            .wait_for(|count| *count == 0)
            .await;
    }

    /// Hears when the server stops.
    pub fn stopping(&self) -> watch::Receiver<bool> {
        self.stop.clone()
    }

    pub(super) fn complete(&self, result: Value, caching: Caching) -> Outcome {
        Outcome::Complete(self.completed(result, caching))
    }

    /// A complete result, for who writes it out before it becomes an outcome.
    pub(super) fn completed(&self, result: Value, caching: Caching) -> Value {
        results::complete(result, caching, &self.catalog.server)
    }

    /// A tool's result as it is kept until somebody asks for it: complete in the newest shape.
    pub(super) fn kept(&self, result: &ToolResult) -> Value {
        self.completed(result.to_value(), Caching::None)
    }

    /// A result that says who answered.
    pub(super) fn signed(&self, mut result: Value) -> Value {
        self.catalog.server.sign(&mut result);
        result
    }

    /// `logging/setLevel` of the stateful revisions: the severity, when logging is offered.
    pub fn log_level(&self, name: Option<&str>) -> Result<Level, RpcError> {
        if !self.catalog.capabilities().logging {
            return Err(RpcError::method_not_found("logging/setLevel"));
        }
        name.and_then(Level::parse).ok_or_else(|| {
            RpcError::invalid_params(
                "level is one of debug, info, notice, warning, error, critical, alert, emergency",
            )
            .with_data(json!({ "level": name }))
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
