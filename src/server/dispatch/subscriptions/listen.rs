//! `subscriptions/listen`: what a client subscribes to, and the long-lived reply.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::interests::{Interests, ResourceCursor};
use super::listener::{Listener, ListenerEvent};
use crate::dispatch::call::{Call, CallContext, CallOutcome};
use crate::dispatch::engine::Engine;
use crate::dispatch::tasks::methods::check_declared;
use crate::dispatch::tasks::watch::TaskWatch;
use gatewren_wire::protocol::{
    Implementation, Notification, Params, RpcError, SharedNotification, key,
};
use gatewren_wire::registry::ListChange;

/// The `_meta` key for the last revision of the resources that the client knows.
const SINCE: &str = key::SINCE;

/// The maximum number of tasks of a listener; more are refused.
const MAX_TASKS: usize = 256;

/// The subscriptions that a client asks for.
struct Filter {
    tools: bool,
    prompts: bool,
    resources: bool,
    uris: Vec<String>,
    tasks: Vec<String>,
}

impl Filter {
    fn read(params: &Params) -> Result<Self, RpcError> {
        let Some(Value::Object(asked)) = params.get("notifications") else {
            return Err(RpcError::invalid_params(
                "subscriptions/listen requires params.notifications, an object",
            ));
        };
        let flag = |name: &str| match asked.get(name) {
            None => Ok(false),
            Some(Value::Bool(wanted)) => Ok(*wanted),
            Some(_) => Err(RpcError::invalid_params(format!(
                "{name} must be true or false"
            ))),
        };
        Ok(Self {
            tools: flag("toolsListChanged")?,
            prompts: flag("promptsListChanged")?,
            resources: flag("resourcesListChanged")?,
            uris: texts(asked, "resourceSubscriptions")?,
            tasks: texts(asked, "taskIds")?,
        })
    }

    /// Removes what the server does not support.
    fn honour(&mut self, engine: &Engine, client: &CallContext) {
        let offered = engine.catalog.capabilities();
        self.tools &= offered.lists_change || offered.tools_change;
        self.prompts &= offered.lists_change && offered.prompts;
        self.resources &= offered.lists_change && offered.resources;
        self.uris.retain(|uri| engine.can_watch(client, uri));
    }

    fn should_send(&self, event: &ListenerEvent) -> bool {
        match event {
            ListenerEvent::Updated { .. } | ListenerEvent::Task(_) => true,
            ListenerEvent::List(ListChange::Tools) => self.tools,
            ListenerEvent::List(ListChange::Prompts) => self.prompts,
            ListenerEvent::List(ListChange::Resources) => self.resources,
            // Log messages belong to the stream of a request (2026-07-28, server/utilities/logging).
            ListenerEvent::Logged(_) => false,
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

/// Reads a list of strings in the filter; an absent list is empty.
fn texts(asked: &Map<String, Value>, name: &str) -> Result<Vec<String>, RpcError> {
    let wrong = || RpcError::invalid_params(format!("{name} must be an array of strings"));
    let Some(list) = asked.get(name) else {
        return Ok(Vec::new());
    };
    let texts = list.as_array().ok_or_else(wrong)?.iter();
    let texts = texts.map(|text| text.as_str().map(str::to_owned));
    texts.collect::<Option<_>>().ok_or_else(wrong)
}

/// Watches the tasks that the filter names, and removes those from the filter that do not exist for this agent.
fn tasks(engine: &Engine, call: &Call, filter: &mut Filter) -> Result<Option<TaskWatch>, RpcError> {
    if filter.tasks.is_empty() {
        return Ok(None);
    }
    if !engine.catalog.capabilities().tasks {
        filter.tasks.clear();
        return Ok(None);
    }
    check_declared(call)?;
    if filter.tasks.len() > MAX_TASKS {
        let words = format!("a listener can watch at most {MAX_TASKS} tasks");
        return Err(RpcError::invalid_params(words));
    }
    let agent = call.context.who.agent_id().as_str();
    let ids = filter.tasks.drain(..).collect();
    let (watch, honoured) = TaskWatch::new(engine, agent, &ids);
    filter.tasks = honoured;
    Ok(Some(watch))
}

/// Reads the last revision that the client knows, which a reconnecting client sends.
fn read_since(call: &Call) -> Result<Option<u64>, RpcError> {
    let Some(since) = call.params.meta(SINCE) else {
        return Ok(None);
    };
    let words = || format!("_meta[\"{SINCE}\"] must be a revision from the _meta of a resource");
    since
        .as_u64()
        .map(Some)
        .ok_or_else(|| RpcError::invalid_params(words()))
}

/// The final result of a subscription that the server ends; the client may subscribe again.
pub fn final_result(id: Value, server: &Implementation) -> CallOutcome {
    let meta = Map::from_iter([(key::SUBSCRIPTION_ID.to_owned(), id)]);
    let mut result = json!({ "resultType": "complete", "_meta": meta });
    server.sign(&mut result);
    CallOutcome::Complete(result)
}

/// A subscription, which lasts until the client or the server ends it. It has no queue: while its client does not
/// read, further changes stay in the cursors.
pub struct ClientSubscription {
    listener: Listener,
    filter: Filter,
    /// The id of its request, as JSON.
    id: Box<str>,
}

/// A notification of a subscription.
pub enum SubscriptionNotice {
    /// Text that only this subscription has.
    Own(Vec<u8>),
    /// Text that all subscriptions to a resource share, but for their marks.
    Shared(Arc<SharedNotification>),
}

impl ClientSubscription {
    /// `subscriptions/listen`: begins a subscription.
    pub fn begin(engine: &Engine, call: &Call) -> Result<Self, RpcError> {
        let mut filter = Filter::read(&call.params)?;
        filter.honour(engine, &call.context);
        let interests = Arc::new(Interests::default());
        let known = read_since(call)?;
        for uri in &filter.uris {
            let since = match (engine.since(&call.context, uri), known) {
                (ResourceCursor::Revision(_), Some(known)) => ResourceCursor::Revision(known),
                (since, _) => since,
            };
            interests.add(uri, since)?;
        }
        let patches = call.context.capabilities.wants_patches();
        let mut listener = Listener::new(engine, &call.context, interests)
            .with_patches(patches)
            .with_messages(&engine.catalog, "");
        if let Some(tasks) = tasks(engine, call, &mut filter)? {
            listener = listener.with_tasks(tasks);
        }
        Ok(Self {
            listener,
            filter,
            id: json!(call.id).to_string().into(),
        })
    }

    /// The first notification. It names what the client has subscribed to, which is not needed afterwards.
    pub fn acknowledge(&mut self) -> Vec<u8> {
        let note = self.filter.acknowledgement();
        self.filter.uris = Vec::new();
        self.filter.tasks = Vec::new();
        self.mark(note)
    }

    /// Returns the next notification; `None` when the server stops.
    pub async fn next(&mut self) -> Option<SubscriptionNotice> {
        loop {
            let event = self.listener.next().await?;
            if let ListenerEvent::Updated { text, .. } = event {
                return Some(SubscriptionNotice::Shared(text));
            }
            if self.filter.should_send(&event) {
                let note = event.to_notification();
                return note.map(|note| SubscriptionNotice::Own(self.mark(note)));
            }
        }
    }

    /// The bytes of a notification, in parts.
    pub fn parts<'a>(&'a self, notice: &'a SubscriptionNotice) -> [&'a [u8]; 3] {
        match notice {
            SubscriptionNotice::Own(text) => [text, &[], &[]],
            SubscriptionNotice::Shared(text) => text.marked(&self.id),
        }
    }

    fn mark(&self, note: Notification) -> Vec<u8> {
        SharedNotification::new(note, key::SUBSCRIPTION_ID)
            .marked(&self.id)
            .concat()
    }
}
