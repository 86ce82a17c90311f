//! The engine: a catalog and everything that is needed to answer calls, shared by all connections.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;

use super::call::{CallContext, CallOutcome};
use super::changes::inbox::{Inbox, InboxLimits};
use super::changes::owner_waits::OwnerWaits;
use super::listing::Listings;
use super::results;
use super::results::CachePolicy;
use super::signed_state::StateSigner;
use super::subscriptions::interests::ResourceCursor;
use super::subscriptions::update_texts::UpdateTexts;
use super::tasks::store::{MemoryTasks, TaskStore};
use super::tasks::table::{TaskLimits, Tasks};
use gatewren_base::sys::lock;
use gatewren_base::telemetry::Metrics;
use gatewren_gate::auth::Principal;
use gatewren_gate::policy::Confirmations;
use gatewren_store::vault::Vault;
use gatewren_wire::protocol::{LogSeverity, RpcError, SerializedJson, ToolResult};
use gatewren_wire::registry::{BoxFuture, Catalog, Viewer};

/// Waits until an authenticated agent's policy or reach changes and returns the new principal; `None` if the
/// agent's access has ended.
pub type PrincipalUpdates = dyn Fn(Principal) -> BoxFuture<Option<Principal>> + Send + Sync;

/// Records the outcome of a call that waits for a person; if dropped uncalled, it records the call as cancelled.
pub(super) type OutcomeRecorder = Box<dyn FnOnce(&'static str) + Send>;

/// The default interval between notifications about the same resource; the first one after a pause is sent at once.
const UPDATE_INTERVAL: Duration = Duration::from_millis(500);

/// The default time for an answer of a client's user.
const CONFIRM_TIMEOUT: Duration = Duration::from_mins(5);

/// Answers calls from one catalog; shared by every connection.
pub struct Engine {
    /// The tools, resources and prompts on offer.
    pub catalog: Catalog,
    /// The server's identity, as added to results.
    pub signature: SerializedJson,
    /// Where calls are recorded; `None` for the fixtures.
    pub(super) vault: Option<Vault>,
    /// Cached first pages of `tools/list`.
    pub(super) tool_lists: Listings,
    pub(super) sealer: StateSigner,
    /// Counters of calls and streams.
    pub metrics: Arc<Metrics>,
    /// Becomes true when the server stops.
    pub(super) stop: watch::Receiver<bool>,
    /// The number of tool calls in progress, in any task.
    pub(super) in_flight: watch::Sender<usize>,
    /// The calls that continue after their answer.
    pub(super) tasks: Tasks,
    /// The calls that wait for a person's confirmation.
    pub(super) questions: Confirmations<OutcomeRecorder>,
    /// The calls that wait for the owner's decision.
    pub(super) owner_waits: OwnerWaits,
    /// The agents' proposals; `None` for the fixtures, which have no owner to approve them.
    pub(super) inbox: Option<Inbox>,
    /// The texts of the latest updates of resources.
    pub(super) update_texts: Arc<UpdateTexts>,
    update_interval: Mutex<Duration>,
    confirm_timeout: Mutex<Duration>,
    streams: AtomicBool,
    principal_updates: Option<Arc<PrincipalUpdates>>,
}

impl Engine {
    /// Creates an engine over a catalog.
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
            update_texts: Arc::default(),
            update_interval: Mutex::new(UPDATE_INTERVAL),
            confirm_timeout: Mutex::new(CONFIRM_TIMEOUT),
            streams: AtomicBool::new(true),
            principal_updates: None,
            questions: Confirmations::default(),
            owner_waits: OwnerWaits::default(),
            inbox: None,
            signature: catalog.server.signature(),
            catalog,
            vault,
            tool_lists: Listings::default(),
            sealer: StateSigner::new(seal_key),
            metrics: Arc::default(),
            stop,
            in_flight: watch::Sender::new(0),
        }
    }

    /// Has the ids of tasks contain the name of this front.
    pub fn name_tasks(&self, instance: &str) {
        self.tasks.set_instance(instance);
    }

    /// Sets the minimum interval between notifications about one resource; open streams keep theirs.
    pub fn set_update_interval(&self, every: Duration) {
        *lock(&self.update_interval) = every;
    }

    pub(super) fn update_interval(&self) -> Duration {
        *lock(&self.update_interval)
    }

    /// Sets how long a question waits for the user of a client; open questions keep theirs.
    pub fn set_confirm_timeout(&self, timeout: Duration) {
        *lock(&self.confirm_timeout) = timeout;
    }

    /// How long a question waits for the user of a client.
    pub fn confirm_timeout(&self) -> Duration {
        *lock(&self.confirm_timeout)
    }

    /// Sets whether `/mcp` answers with event streams.
    pub fn set_streaming(&self, streams: bool) {
        self.streams.store(streams, Ordering::Relaxed);
    }

    /// Whether `/mcp` answers with event streams.
    pub fn streams(&self) -> bool {
        self.streams.load(Ordering::Relaxed)
    }

    /// Sets the limits of tasks; existing tasks keep their expiry.
    pub fn set_task_limits(&self, limits: TaskLimits) {
        self.tasks.set_limits(limits);
    }

    /// Sets the limits of proposals; existing proposals keep their expiry.
    pub fn set_inbox_limits(&self, limits: InboxLimits) {
        if let Some(inbox) = &self.inbox {
            inbox.set_limits(limits);
        }
    }

    /// Adds the inbox, which stores the agents' proposals and supplies the approved changes.
    #[must_use]
    pub fn with_inbox(mut self, inbox: Inbox) -> Self {
        self.inbox = Some(inbox);
        self
    }

    /// Adds a watch on agents' access: an agent's tasks end when its access ends, and it is notified when its tools
    /// change.
    #[must_use]
    pub fn with_principal_updates(mut self, principal_updates: Arc<PrincipalUpdates>) -> Self {
        self.principal_updates = Some(principal_updates);
        self
    }

    pub(super) fn principal_updates(&self) -> Option<Arc<PrincipalUpdates>> {
        self.principal_updates.clone()
    }

    pub(super) async fn wait_for_access_end(&self, who: &Principal) {
        let Some(principal_updates) = &self.principal_updates else {
            return std::future::pending().await;
        };
        let mut who = who.clone();
        while let Some(later) = principal_updates(who).await {
            who = later;
        }
    }

    /// Removes expired tasks, for as long as it runs.
    pub async fn sweep_tasks(&self) {
        /// Expired tasks are invisible to clients at once; this is how soon they are deleted from disk.
        const EVERY: Duration = Duration::from_mins(1);
        loop {
            tokio::time::sleep(EVERY).await;
            self.tasks.sweep().await;
        }
    }

    /// The newest revision of the resources that the caller can see.
    pub fn revision(&self, caller: &CallContext) -> u64 {
        self.newest(&caller.viewer())
    }

    pub(super) fn newest(&self, viewer: &Viewer) -> u64 {
        let source = self.catalog.resources();
        source.map_or(0, |source| source.newest(viewer))
    }

    /// The newest revision of the state, regardless of who can see it.
    pub(super) fn newest_of_all(&self) -> Option<u64> {
        let source = self.catalog.resources()?;
        let revision_watch = source.watch_revision();
        let revision = *revision_watch.borrow();
        Some(revision)
    }

    /// Where the updates of a resource start for a caller that subscribes now.
    pub fn since(&self, caller: &CallContext, uri: &str) -> ResourceCursor {
        match self.catalog.resources() {
            Some(source) if source.has_separate_count(uri) => {
                ResourceCursor::Apart(source.separate_count())
            }
            _ => ResourceCursor::Revision(self.revision(caller)),
        }
    }

    /// Whether a caller may subscribe to a resource.
    pub fn can_watch(&self, caller: &CallContext, uri: &str) -> bool {
        let source = self.catalog.resources();
        source.is_some_and(|source| source.can_watch(&caller.viewer(), uri))
    }

    /// Waits until no tool call is in progress, including calls of disconnected clients.
    pub async fn idle(&self) {
        let _ = self
            .in_flight
            .subscribe()
            .wait_for(|count| *count == 0)
            .await;
    }

    /// Returns a receiver that becomes true when the server stops.
    pub fn stopping(&self) -> watch::Receiver<bool> {
        self.stop.clone()
    }

    pub(super) fn complete(&self, result: Value, caching: CachePolicy) -> CallOutcome {
        CallOutcome::Complete(self.complete_result(result, caching))
    }

    /// Completes a result, for callers that serialize it before it becomes an outcome.
    pub(super) fn complete_result(&self, result: Value, caching: CachePolicy) -> Value {
        results::complete(result, caching, &self.catalog.server)
    }

    /// A tool's result as it is stored: complete, in the newest revision's shape.
    pub(super) fn complete_for_storage(&self, result: &ToolResult) -> Value {
        self.complete_result(result.to_value(), CachePolicy::None)
    }

    /// Adds the server's identity to a result.
    pub(super) fn sign_result(&self, mut result: Value) -> Value {
        self.catalog.server.sign(&mut result);
        result
    }

    /// `logging/setLevel` of the stateful revisions: parses the severity, if logging is offered.
    pub fn log_level(&self, name: Option<&str>) -> Result<LogSeverity, RpcError> {
        if !self.catalog.capabilities().logging {
            return Err(RpcError::method_not_found("logging/setLevel"));
        }
        name.and_then(LogSeverity::parse).ok_or_else(|| {
            RpcError::invalid_params(
                "level must be one of debug, info, notice, warning, error, critical, alert, emergency",
            )
            .with_data(json!({ "level": name }))
        })
    }
}
