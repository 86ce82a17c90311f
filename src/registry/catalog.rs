//! Everything a client may ask for, by name.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::broadcast;

use super::{
    completion::Completer,
    prompt::PromptRow,
    resource::{BoxFuture, ResourceSource},
    task::TaskSupport,
    tool::Tool,
    toolset::Toolset,
};
use crate::config::{Dialect, HelperClass};
use crate::protocol::{Implementation, Level, ServerCapabilities, is_portable_name, is_tool_name};

/// A list that has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListChange {
    /// The tools.
    Tools,
    /// The prompts.
    Prompts,
    /// The resources.
    Resources,
}

/// Which lists change while they are looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Changing {
    #[default]
    None,
    Tools,
    Every,
}

/// A log message outside of any call, for the client of one session. The stateless revision has none: there a
/// request hears the messages of its own call alone.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionLog {
    /// The session, as [`super::cx::Caller`] names it.
    pub session: Arc<str>,
    /// Its severity; a client that has not asked for it does not hear it.
    pub level: Level,
    /// What logs.
    pub logger: &'static str,
    /// What is logged.
    pub data: Value,
}

/// Told before a call, by its audit id, that it will change the box; what it gives is awaited when the call is
/// done, until the state shows it: the revision that does.
type Settle = dyn Fn(&str) -> BoxFuture<Option<u64>> + Send + Sync;

/// Whether the helper does what belongs to a class, as far as is known.
type Allows = dyn Fn(HelperClass) -> bool + Send + Sync;

/// A server definition: one catalog, many connections.
pub struct Catalog {
    /// Who answers.
    pub server: Arc<Implementation>,
    /// What a model is told first.
    pub instructions: Option<String>,
    /// By which names tools are listed.
    pub dialect: Dialect,
    tools: BTreeMap<String, Arc<Tool>>,
    aliases: HashMap<&'static str, Arc<Tool>>,
    prompts: BTreeMap<String, Arc<PromptRow>>,
    resources: Option<Arc<dyn ResourceSource>>,
    completer: Option<Box<Completer>>,
    settle: Option<Box<Settle>>,
    logging: bool,
    tasks: bool,
    changing: Changing,
    allows: Option<Box<Allows>>,
    lists: Option<broadcast::Sender<ListChange>>,
    session_logs: Option<broadcast::Sender<SessionLog>>,
}

/// Why a tool cannot be put into the catalog; found at start, never on a request's way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogError(String);

impl fmt::Display for CatalogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CatalogError {}

impl Catalog {
    /// A catalog that offers nothing yet.
    pub fn new(server: Implementation) -> Self {
        Self {
            server: Arc::new(server),
            instructions: None,
            dialect: Dialect::default(),
            tools: BTreeMap::new(),
            aliases: HashMap::new(),
            prompts: BTreeMap::new(),
            resources: None,
            completer: None,
            settle: None,
            logging: false,
            tasks: false,
            changing: Changing::default(),
            allows: None,
            lists: None,
            session_logs: None,
        }
    }

    /// Adds a group of tools.
    pub fn add<B: Send + Sync + 'static>(&mut self, set: Toolset<B>) -> Result<(), CatalogError> {
        for mut tool in set.into_tools() {
            let name = tool.name().to_owned();
            tool.check()
                .map_err(|why| CatalogError(format!("tool {name}: {why}")))?;
            if !is_tool_name(&name) {
                let rule = "1 to 64 of A-Z, a-z, 0-9, _, - and .";
                return Err(CatalogError(format!(
                    "tool {name:?} has a name that is not {rule}"
                )));
            }
            if tool.definition().description.is_empty() {
                return Err(CatalogError(format!("tool {name} has no description")));
            }
            self.tasks |= tool.task_support() != TaskSupport::Never;
            let tool = Arc::new(tool);
            for alias in tool.aliases() {
                if !is_tool_name(alias.name)
                    || self.aliases.insert(alias.name, tool.clone()).is_some()
                {
                    return Err(CatalogError(format!(
                        "the name {} stands twice",
                        alias.name
                    )));
                }
            }
            if self.tools.insert(name.clone(), tool).is_some() {
                return Err(CatalogError(format!("tool {name} stands twice")));
            }
        }
        Ok(())
    }

    /// Refuses tools whose names some clients break on, though the specification allows them.
    pub fn require_portable_names(&self) -> Result<(), CatalogError> {
        match self.tools.keys().find(|name| !is_portable_name(name)) {
            None => Ok(()),
            Some(name) => Err(CatalogError(format!(
                "tool {name:?} has a name that some clients break on; take 1 to 48 of a-z, 0-9 and _"
            ))),
        }
    }

    /// Adds a prompt.
    pub fn add_prompt(&mut self, prompt: PromptRow) {
        self.prompts
            .insert(prompt.definition.name.clone(), Arc::new(prompt));
    }

    /// Serves resources from here.
    pub fn set_resources(&mut self, source: Arc<dyn ResourceSource>) {
        self.resources = Some(source);
    }

    /// Completes arguments with this.
    pub fn set_completer(&mut self, completer: Box<Completer>) {
        self.completer = Some(completer);
    }

    /// Waits with this for the state after a call that changes the box.
    pub fn set_settle(&mut self, settle: Box<Settle>) {
        self.settle = Some(settle);
    }

    /// Offers log messages to clients.
    pub fn offer_logging(&mut self) {
        self.logging = true;
    }

    /// The tools that an agent sees change with its policy while it listens, and it hears of that.
    pub fn offer_tool_changes(&mut self) {
        self.changing = self.changing.max(Changing::Tools);
    }

    /// Tools that need what this says no to are not there, for nobody; it is asked whenever one is looked for.
    pub fn bound_by(&mut self, allows: Box<Allows>) {
        self.allows = Some(allows);
        let _ = self.lists();
    }

    /// Tells whoever listens that other tools are there than before.
    pub fn tell_tools_changed(&self) {
        if let Some(lists) = &self.lists {
            // Nobody may be listening.
            let _ = lists.send(ListChange::Tools);
        }
    }

    /// Lists will change, and whoever holds this says so.
    pub fn announce_list_changes(&mut self) -> broadcast::Sender<ListChange> {
        self.changing = Changing::Every;
        self.lists()
    }

    fn lists(&mut self) -> broadcast::Sender<ListChange> {
        /// A listener that is further behind has missed nothing that one notification does not say.
        const KEPT: usize = 16;
        self.lists
            .get_or_insert_with(|| broadcast::channel(KEPT).0)
            .clone()
    }

    /// There will be log messages outside of calls, and whoever holds this sends them.
    pub fn log_to_sessions(&mut self) -> broadcast::Sender<SessionLog> {
        /// A listener that is further behind misses the oldest: log messages are no record.
        const KEPT: usize = 64;
        self.session_logs
            .get_or_insert_with(|| broadcast::channel(KEPT).0)
            .clone()
    }

    /// A tool that is there, by its name or its alias.
    pub fn tool(&self, name: &str) -> Option<&Arc<Tool>> {
        let tool = self.tools.get(name).or_else(|| self.aliases.get(name));
        tool.filter(|tool| self.has(tool))
    }

    /// Whether a tool is there: whether what it stands on is, and the helper does what it needs, or a part of it.
    pub fn has(&self, tool: &Tool) -> bool {
        let allows = self.allows.as_ref().zip(tool.needs());
        let allowed = allows
            .is_none_or(|(allows, class)| allows(class) || tool.or_needs().is_some_and(allows));
        allowed && tool.is_there()
    }

    /// Every tool, by name, also those that are not there.
    pub fn tools(&self) -> impl Iterator<Item = &Arc<Tool>> {
        self.tools.values()
    }

    /// A prompt by its name.
    pub fn prompt(&self, name: &str) -> Option<&Arc<PromptRow>> {
        self.prompts.get(name)
    }

    /// Every prompt, by name.
    pub fn prompts(&self) -> impl Iterator<Item = &Arc<PromptRow>> {
        self.prompts.values()
    }

    /// Where resources come from.
    pub fn resources(&self) -> Option<&Arc<dyn ResourceSource>> {
        self.resources.as_ref()
    }

    /// What completes arguments.
    pub fn completer(&self) -> Option<&Completer> {
        self.completer.as_deref()
    }

    /// For the call with this audit id, which is about to change the box: gives, awaited when it has, the
    /// revision that shows it.
    pub fn settling(&self, audit_id: &str) -> BoxFuture<Option<u64>> {
        match &self.settle {
            Some(settle) => settle(audit_id),
            None => Box::pin(std::future::ready(None)),
        }
    }

    /// Hears of changed lists; `None` when lists never change.
    pub fn list_changes(&self) -> Option<broadcast::Receiver<ListChange>> {
        self.lists.as_ref().map(broadcast::Sender::subscribe)
    }

    /// Hears log messages outside of calls; `None` when there never are any.
    pub fn session_logs(&self) -> Option<broadcast::Receiver<SessionLog>> {
        self.session_logs.as_ref().map(broadcast::Sender::subscribe)
    }

    /// What is offered.
    pub fn capabilities(&self) -> ServerCapabilities {
        ServerCapabilities {
            tools: true,
            resources: self.resources.is_some(),
            prompts: !self.prompts.is_empty(),
            completions: self.completer.is_some(),
            logging: self.logging,
            lists_change: self.changing == Changing::Every,
            tools_change: self.changing >= Changing::Tools,
            tasks: self.tasks,
        }
    }
}
