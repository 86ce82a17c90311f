//! The catalog: everything a client may ask for, by name.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::sync::broadcast;

use super::{
    completion::Completer,
    prompt::PromptRow,
    resource::{BoxFuture, ResourceSource},
    scope::Scope,
    session_message::{ListChange, SessionMessage},
    task::TaskSupport,
    tool::Tool,
    toolset::Toolset,
};
use crate::protocol::{Implementation, ServerCapabilities, is_portable_name, is_tool_name};
use gatewren_base::config::{Dialect, HelperClass, Reach};

/// The lists that may change while a client listens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Changing {
    #[default]
    None,
    Tools,
    Every,
}

/// Which clients may ask for log messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogOffer {
    /// None.
    #[default]
    None,
    /// Clients with a session. They also receive messages about their calls. The stateless revision deprecates log
    /// messages, so its clients receive none.
    Sessions,
    /// All clients. The tools themselves log.
    Everyone,
}

/// Called with the audit id before a call that changes the host. The returned future is awaited after the call; it
/// waits until the state reflects the call, and returns that revision.
type Settle = dyn Fn(&str) -> BoxFuture<Option<u64>> + Send + Sync;

/// Returns the references of the containers that exist within a reach; none if they cannot be read. The text identifies
/// the call in the helper's log.
type ContainersWithin = dyn Fn(&Reach, &str) -> BoxFuture<Vec<String>> + Send + Sync;

/// Whether the helper runs the operations of a class, as far as is known.
type Allows = dyn Fn(HelperClass) -> bool + Send + Sync;

/// A server definition: one catalog for many connections.
pub struct Catalog {
    /// The server's identity.
    pub server: Arc<Implementation>,
    /// The instructions for a model.
    pub instructions: Option<String>,
    /// Whether the server is invented: no call reaches the host.
    pub is_demo: bool,
    /// The dialect that decides the names of listed tools.
    pub dialect: Dialect,
    tools: BTreeMap<String, Arc<Tool>>,
    aliases: HashMap<&'static str, Arc<Tool>>,
    prompts: BTreeMap<String, Arc<PromptRow>>,
    resources: Option<Arc<dyn ResourceSource>>,
    completer: Option<Box<Completer>>,
    settle: Option<Box<Settle>>,
    containers: Option<Box<ContainersWithin>>,
    logging: LogOffer,
    tasks: bool,
    changing: Changing,
    allows: Option<Box<Allows>>,
    lists: Option<broadcast::Sender<ListChange>>,
    session_messages: Option<broadcast::Sender<SessionMessage>>,
}

/// Why a tool cannot be added to the catalog; detected at the start, never while a request is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogError(String);

impl fmt::Display for CatalogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CatalogError {}

impl Catalog {
    /// Creates an empty catalog.
    pub fn new(server: Implementation) -> Self {
        Self {
            server: Arc::new(server),
            instructions: None,
            is_demo: false,
            dialect: Dialect::default(),
            tools: BTreeMap::new(),
            aliases: HashMap::new(),
            prompts: BTreeMap::new(),
            resources: None,
            completer: None,
            settle: None,
            containers: None,
            logging: LogOffer::None,
            tasks: false,
            changing: Changing::default(),
            allows: None,
            lists: None,
            session_messages: None,
        }
    }

    /// Adds a toolset.
    pub fn add<B: Send + Sync + 'static>(&mut self, set: Toolset<B>) -> Result<(), CatalogError> {
        for mut tool in set.into_tools() {
            let name = tool.name().to_owned();
            tool.check()
                .map_err(|why| CatalogError(format!("tool {name}: {why}")))?;
            if !is_tool_name(&name) {
                let rule = "1 to 64 of A-Z, a-z, 0-9, _, - and .";
                return Err(CatalogError(format!(
                    "tool {name:?} has an invalid name; it must be {rule}"
                )));
            }
            if tool.definition().description.is_empty() {
                return Err(CatalogError(format!("tool {name} has no description")));
            }
            self.tasks |= tool.task_support() != TaskSupport::Never;
            let tool = Arc::new(tool);
            let aliases = tool.aliases().iter().map(|alias| alias.name);
            for other in aliases.chain(tool.other_name()) {
                if !is_tool_name(other) || self.aliases.insert(other, tool.clone()).is_some() {
                    return Err(CatalogError(format!("duplicate name {other}")));
                }
            }
            if self.tools.insert(name.clone(), tool).is_some() {
                return Err(CatalogError(format!("duplicate tool {name}")));
            }
        }
        Ok(())
    }

    /// Refuses tool names that the specification allows but that some clients cannot handle.
    pub fn require_portable_names(&self) -> Result<(), CatalogError> {
        match self.tools.keys().find(|name| !is_portable_name(name)) {
            None => Ok(()),
            Some(name) => Err(CatalogError(format!(
                "tool {name:?} has a name that some clients reject; use 1 to 48 of a-z, 0-9 and _"
            ))),
        }
    }

    /// Adds a prompt.
    pub fn add_prompt(&mut self, prompt: PromptRow) {
        self.prompts
            .insert(prompt.definition.name.clone(), Arc::new(prompt));
    }

    /// Sets the source of resources.
    pub fn set_resources(&mut self, source: Arc<dyn ResourceSource>) {
        self.resources = Some(source);
    }

    /// Sets the completer of arguments.
    pub fn set_completer(&mut self, completer: Box<Completer>) {
        self.completer = Some(completer);
    }

    /// Sets the function that waits for the state after a call that changes the host.
    pub fn set_settle(&mut self, settle: Box<Settle>) {
        self.settle = Some(settle);
    }

    /// Sets the function that lists the containers on the host.
    pub fn set_containers(&mut self, containers: Box<ContainersWithin>) {
        self.containers = Some(containers);
    }

    /// Offers log messages to these clients.
    pub fn offer_logging(&mut self, offer: LogOffer) {
        self.logging = offer;
    }

    /// Which clients may ask for log messages.
    pub fn log_offer(&self) -> LogOffer {
        self.logging
    }

    /// Announces that an agent's tools may change with its policy while it listens, and that it is notified.
    pub fn offer_tool_changes(&mut self) {
        self.changing = self.changing.max(Changing::Tools);
    }

    /// Hides tools from everyone if this function denies the class that they need; it is called at every lookup.
    pub fn bound_by(&mut self, allows: Box<Allows>) {
        self.allows = Some(allows);
        let _ = self.lists();
    }

    /// Notifies listeners that the available tools have changed.
    pub fn announce_tools_changed(&self) {
        if let Some(lists) = &self.lists {
            // Fails only if there are no listeners.
            let _ = lists.send(ListChange::Tools);
        }
    }

    /// Announces that lists may change; the holder of the returned sender sends the changes.
    pub fn announce_list_changes(&mut self) -> broadcast::Sender<ListChange> {
        self.changing = Changing::Every;
        self.lists()
    }

    fn lists(&mut self) -> broadcast::Sender<ListChange> {
        /// A listener that lags further behind has missed nothing, because one notification replaces all.
        const KEPT: usize = 16;
        self.lists
            .get_or_insert_with(|| broadcast::channel(KEPT).0)
            .clone()
    }

    /// Announces messages outside of calls; the holder of the returned sender sends them.
    pub fn message_sessions(&mut self) -> broadcast::Sender<SessionMessage> {
        /// A listener that lags further behind misses the oldest: log messages are not a reliable record.
        const KEPT: usize = 64;
        self.session_messages
            .get_or_insert_with(|| broadcast::channel(KEPT).0)
            .clone()
    }

    /// Returns an available tool by its name or its alias.
    pub fn tool(&self, name: &str) -> Option<&Arc<Tool>> {
        let tool = self.tools.get(name).or_else(|| self.aliases.get(name));
        tool.filter(|tool| self.has(tool))
    }

    /// Returns the tool of this name or alias that the helper does not allow, with the class that it needs.
    pub fn switched_off(&self, name: &str) -> Option<(&Arc<Tool>, HelperClass)> {
        let tool = self.tools.get(name).or_else(|| self.aliases.get(name))?;
        let class = tool.needs().filter(|_| !self.allows(tool))?;
        Some((tool, class))
    }

    /// Whether a tool is available: its dependencies are, and the helper allows at least one of the classes it can
    /// use.
    pub fn has(&self, tool: &Tool) -> bool {
        self.allows(tool) && tool.is_available()
    }

    fn allows(&self, tool: &Tool) -> bool {
        let allows = self.allows.as_ref().zip(tool.needs());
        allows.is_none_or(|(allows, class)| allows(class) || tool.or_needs().is_some_and(allows))
    }

    /// Returns the class that a call with these arguments needs and the helper does not allow. Of a tool that also
    /// works without an argument, on the host, only one of its two classes may be allowed.
    pub fn missing_class(
        &self,
        tool: &Tool,
        arguments: &Map<String, Value>,
    ) -> Option<HelperClass> {
        let (Scope::HostOr(container), Some(allows)) = (tool.scope(), &self.allows) else {
            return None;
        };
        let is_named = arguments.get(container).is_some_and(|name| !name.is_null());
        let class = if is_named {
            tool.or_needs()
        } else {
            tool.needs()
        };
        class.filter(|class| !allows(*class))
    }

    /// All tools by name, including unavailable ones.
    pub fn tools(&self) -> impl Iterator<Item = &Arc<Tool>> {
        self.tools.values()
    }

    /// Returns a prompt by its name.
    pub fn prompt(&self, name: &str) -> Option<&Arc<PromptRow>> {
        self.prompts.get(name)
    }

    /// All prompts, by name.
    pub fn prompts(&self) -> impl Iterator<Item = &Arc<PromptRow>> {
        self.prompts.values()
    }

    /// The source of resources.
    pub fn resources(&self) -> Option<&Arc<dyn ResourceSource>> {
        self.resources.as_ref()
    }

    /// The completer of arguments.
    pub fn completer(&self) -> Option<&Completer> {
        self.completer.as_deref()
    }

    /// Prepares for the call with this audit id, which will change the host. The returned future is awaited after
    /// the call and returns the revision that reflects it.
    pub fn settling(&self, audit_id: &str) -> BoxFuture<Option<u64>> {
        match &self.settle {
            Some(settle) => settle(audit_id),
            None => Box::pin(std::future::ready(None)),
        }
    }

    /// Returns the references of the containers that exist on the host within a reach, as the host has them now; none if
    /// they cannot be read. `reference` identifies the call in the helper's log.
    pub fn containers_within(&self, reach: &Reach, reference: &str) -> BoxFuture<Vec<String>> {
        match &self.containers {
            Some(containers) => containers(reach, reference),
            None => Box::pin(std::future::ready(Vec::new())),
        }
    }

    /// Subscribes to changed lists; `None` if lists never change.
    pub fn list_changes(&self) -> Option<broadcast::Receiver<ListChange>> {
        self.lists.as_ref().map(broadcast::Sender::subscribe)
    }

    /// Returns the sender of messages outside of calls; `None` if there are never any.
    pub fn session_message_sender(&self) -> Option<broadcast::Sender<SessionMessage>> {
        self.session_messages.clone()
    }

    /// Subscribes to messages outside of calls; `None` if there are never any.
    pub fn session_messages(&self) -> Option<broadcast::Receiver<SessionMessage>> {
        let messages = self.session_messages.as_ref();
        messages.map(broadcast::Sender::subscribe)
    }

    /// The capabilities that the server declares.
    pub fn capabilities(&self) -> ServerCapabilities {
        ServerCapabilities {
            tools: true,
            resources: self.resources.is_some(),
            prompts: !self.prompts.is_empty(),
            completions: self.completer.is_some(),
            logging: self.logging != LogOffer::None,
            lists_change: self.changing == Changing::Every,
            tools_change: self.changing >= Changing::Tools,
            tasks: self.tasks,
            subscriptions: true,
        }
    }
}
