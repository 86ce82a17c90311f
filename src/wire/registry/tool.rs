//! A tool: its definition, its class, and its function.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{
    alias::Alias,
    answer::Answer,
    cx::Cx,
    error::{Result, ToolError},
    permit::Permit,
    resource::BoxFuture,
    schema,
    scope::Scope,
    task::TaskSupport,
    unused_arguments::ArgumentRules,
};
use crate::protocol;
use gatewren_base::config::{HelperClass, Risk};

/// Whether a tool is currently available.
pub type AvailabilityCheck = Arc<dyn Fn() -> bool + Send + Sync>;

type Function = dyn Fn(Map<String, Value>, Cx) -> BoxFuture<Result<Answer>> + Send + Sync;

/// A tool that can be listed and run.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of its row"
)]
pub struct Tool {
    definition: protocol::ToolDefinition,
    answer: Option<fn() -> Value>,
    toolset: &'static str,
    risk: Risk,
    scope: Scope,
    needs: Option<HelperClass>,
    or_needs: Option<HelperClass>,
    is_available: Option<AvailabilityCheck>,
    syncs_state: bool,
    only_runs_command: bool,
    makes_target: bool,
    remembers: bool,
    needs_offers: bool,
    checks_calls: bool,
    includes: Option<&'static str>,
    task_support: TaskSupport,
    aliases: Vec<Alias>,
    other_name: Option<&'static str>,
    long: bool,
    headers: Vec<(String, Vec<String>)>,
    function: Box<Function>,
    reading: Option<Reading>,
    refusal: Option<&'static str>,
}

/// Parses arguments without running anything.
type Reading = fn(Map<String, Value>) -> std::result::Result<(), ToolError>;

impl Tool {
    /// Creates a tool with this definition.
    pub fn new(definition: protocol::ToolDefinition, risk: Risk, function: Box<Function>) -> Self {
        Self {
            definition,
            answer: None,
            toolset: "",
            risk,
            scope: Scope::default(),
            needs: None,
            or_needs: None,
            is_available: None,
            syncs_state: false,
            only_runs_command: false,
            makes_target: false,
            remembers: false,
            needs_offers: false,
            checks_calls: false,
            includes: None,
            task_support: TaskSupport::Never,
            aliases: Vec::new(),
            other_name: None,
            long: false,
            headers: Vec::new(),
            function,
            reading: None,
            refusal: None,
        }
    }

    /// Sets the function that parses its arguments without running it.
    pub(super) fn reading(mut self, reading: Reading) -> Self {
        self.reading = Some(reading);
        self
    }

    /// Checks whether its function would run with these arguments, without running it: used before a person is
    /// asked about the call, or before the call is stored. A tool that was created without a table parses its
    /// arguments only when it runs.
    ///
    /// # Errors
    /// The error that the call would be answered with.
    pub fn check_arguments(
        &self,
        mut arguments: Map<String, Value>,
    ) -> std::result::Result<(), ToolError> {
        if let Some(why) = self.refusal {
            return Err(ToolError::new(why).hint("Nothing was done."));
        }
        self.drop_unused(&mut arguments);
        self.reading.map_or(Ok(()), |reading| reading(arguments))
    }

    /// Runs the tool.
    pub fn run(
        &self,
        _: Permit,
        mut arguments: Map<String, Value>,
        cx: Cx,
    ) -> BoxFuture<Result<Answer>> {
        if let Some(why) = self.refusal {
            let refused = ToolError::new(why).hint("Nothing was done.");
            return Box::pin(std::future::ready(Err(refused.into())));
        }
        self.drop_unused(&mut arguments);
        (self.function)(arguments, cx)
    }

    /// Its definition without the schema of its answers.
    pub fn definition(&self) -> &protocol::ToolDefinition {
        &self.definition
    }

    /// Its definition with that schema. The schema is generated on demand: at the start, the schemas of all tools
    /// took half of the instructions, and only lists show them.
    ///
    /// Fast path: a start takes 22 of 39 million instructions less, and the server at rest 4.7 MB instead of 6.1.
    pub fn full_definition(&self) -> protocol::ToolDefinition {
        let mut described = self.definition.clone();
        let schema = self.answer.map(|answer| answer());
        // In every revision, structured content must be an object.
        let is_object =
            |schema: &Value| schema.get("type").and_then(Value::as_str) == Some("object");
        described.output_schema = schema.filter(is_object);
        described
    }

    /// The definition in `tools/list`. The schema of answers has no descriptions: programs do not read them, and
    /// models would have them in the context of every turn.
    pub fn list_entry(&self) -> protocol::ToolDefinition {
        let mut entry = self.full_definition();
        if let Some(schema) = &mut entry.output_schema {
            schema::remove_descriptions(schema);
        }
        entry
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// The toolset that it belongs to; empty if it has no name.
    pub fn toolset(&self) -> &'static str {
        self.toolset
    }

    /// Its class.
    pub fn risk(&self) -> Risk {
        self.risk
    }

    /// The part of the host that it is about.
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// The class of the helper's operations that it requires, if any.
    pub fn needs(&self) -> Option<HelperClass> {
        self.needs
    }

    /// Another class of operations that makes it useful.
    pub fn or_needs(&self) -> Option<HelperClass> {
        self.or_needs
    }

    /// Whether its dependencies are currently available.
    pub(super) fn is_available(&self) -> bool {
        self.is_available
            .as_ref()
            .is_none_or(|is_available| is_available())
    }

    pub(super) fn set_is_available(&mut self, is_available: AvailabilityCheck) {
        self.is_available = Some(is_available);
    }

    pub(super) fn set_or_needs(&mut self, class: HelperClass) {
        self.or_needs = Some(class);
    }

    pub(super) fn set_needs(&mut self, class: HelperClass) {
        self.needs = Some(class);
    }

    /// The target of a call, such as a container's name, if the call names one.
    pub fn target<'a>(&self, arguments: &'a Map<String, Value>) -> Option<&'a str> {
        let named = |name: &str| arguments.get(name)?.as_str();
        match self.scope {
            Scope::Container(argument) | Scope::Stack(argument) => named(argument),
            Scope::HostOr(argument) => named(argument).or_else(|| named("unit")),
            Scope::Server | Scope::Host | Scope::Within => {
                ["unit", "pointer"].into_iter().find_map(named)
            }
        }
    }

    /// Whether its function has an argument of this name.
    pub fn has_argument(&self, name: &str) -> bool {
        let known = self.definition.input_schema.get("properties");
        known.is_some_and(|known| known.get(name).is_some())
    }

    /// Whether its answer waits until the state reflects its effect.
    pub fn syncs_state(&self) -> bool {
        self.syncs_state
    }

    /// Whether all that it does is to run one command, which can be prepared while the call is being recorded.
    pub fn only_runs_command(&self) -> bool {
        self.only_runs_command
    }

    /// Whether it can create the target of its calls, so that this need not exist before.
    pub fn makes_target(&self) -> bool {
        self.makes_target
    }

    /// Whether its questions may carry state from one round to the next.
    pub fn remembers(&self) -> bool {
        self.remembers
    }

    /// Whether its context includes what the caller may propose.
    pub fn needs_offers(&self) -> bool {
        self.needs_offers
    }

    /// The tool, if any, that answers a part of its own answer. Only callers that may call that one get the part.
    pub fn includes(&self) -> Option<&'static str> {
        self.includes
    }

    /// Whether its context can check calls that it schedules.
    pub fn checks_calls(&self) -> bool {
        self.checks_calls
    }

    /// Whether its calls may become tasks.
    pub fn task_support(&self) -> TaskSupport {
        self.task_support
    }

    /// Whether its calls may take longer than clients wait, and then continue as jobs.
    pub fn is_long(&self) -> bool {
        self.long
    }

    pub(super) fn set_long(&mut self) {
        self.long = true;
    }

    /// The arguments that a 2026-07-28 client repeats as `Mcp-Param-*` headers: header name and path.
    pub fn header_parameters(&self) -> &[(String, Vec<String>)] {
        &self.headers
    }

    /// Its names in the `StartOS` dialect.
    pub fn aliases(&self) -> &[Alias] {
        &self.aliases
    }

    /// A name that calls may use too, but that `tools/list` does not show.
    pub fn other_name(&self) -> Option<&'static str> {
        self.other_name
    }

    pub(super) fn set_other_name(&mut self, name: &'static str) {
        self.other_name = Some(name);
    }

    /// The alias of the `StartOS` dialect with this name, if the tool has it.
    pub fn alias(&self, called: &str) -> Option<Alias> {
        let mut aliases = self.aliases.iter();
        aliases.find(|alias| alias.name == called).copied()
    }

    /// Renames the dialect's parameters to those of this server; a call by this server's name is unchanged.
    ///
    /// # Errors
    /// As [`Alias::translate`].
    pub fn translate(
        alias: Option<Alias>,
        arguments: &mut Map<String, Value>,
    ) -> std::result::Result<(), ToolError> {
        alias.map_or(Ok(()), |alias| alias.translate(arguments))
    }

    pub(super) fn add_alias(&mut self, alias: Alias) {
        self.aliases.push(alias);
    }

    pub(super) fn last_alias(&mut self) -> Option<&mut Alias> {
        self.aliases.last_mut()
    }

    pub(super) fn set_answer(&mut self, schema: fn() -> Value) {
        self.answer = Some(schema);
    }

    pub(super) fn set_toolset(&mut self, name: &'static str) {
        self.toolset = name;
    }

    pub(super) fn set_scope(&mut self, scope: Scope) {
        self.scope = scope;
    }

    /// Sets why calls are refused.
    pub(super) fn set_refusal(&mut self, why: &'static str) {
        self.refusal = Some(why);
    }

    pub(super) fn set_syncs_state(&mut self) {
        self.syncs_state = true;
    }

    pub(super) fn set_only_runs_command(&mut self) {
        self.only_runs_command = true;
    }

    pub(super) fn set_makes_target(&mut self) {
        self.makes_target = true;
    }

    pub(super) fn set_remembers(&mut self) {
        self.remembers = true;
    }

    pub(super) fn set_needs_offers(&mut self) {
        self.needs_offers = true;
    }

    pub(super) fn set_includes(&mut self, other: &'static str) {
        self.includes = Some(other);
    }

    pub(super) fn set_checks_calls(&mut self) {
        self.checks_calls = true;
    }

    pub(super) fn set_task_support(&mut self, support: TaskSupport) {
        self.task_support = support;
    }

    pub(super) fn definition_mut(&mut self) -> &mut protocol::ToolDefinition {
        &mut self.definition
    }

    /// Reads the header parameters from the schema. An invalid annotation, or a schema that clients cannot read,
    /// would make them drop the tool. The schemas of answers come only from this server's own types, and a test
    /// checks them.
    pub(super) fn check(&mut self) -> std::result::Result<(), String> {
        protocol::check_dialect(&self.definition.input_schema)?;
        self.headers = protocol::header_parameters(&self.definition.input_schema)?;
        Ok(())
    }

    fn drop_unused(&self, arguments: &mut Map<String, Value>) {
        let rules = ArgumentRules {
            schema: &self.definition.input_schema,
            scope: self.scope,
            risk: self.risk,
        };
        rules.drop_unused(arguments);
    }
}
