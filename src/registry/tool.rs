//! One tool: its definition, its class, and the function behind it.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{
    answer::Answer,
    cx::Cx,
    error::{Result, ToolError},
    permit::Permit,
    resource::BoxFuture,
    schema,
    scope::Scope,
    task::TaskSupport,
};
use crate::config::{HelperClass, Risk};
use crate::protocol;

/// Whether a tool is there at the moment.
pub type IsThere = Arc<dyn Fn() -> bool + Send + Sync>;

type Function = dyn Fn(Map<String, Value>, Cx) -> BoxFuture<Result<Answer>> + Send + Sync;

/// A tool that can be listed and run.
#[expect(clippy::struct_excessive_bools, reason = "each is a word of its row")]
pub struct Tool {
    definition: protocol::Tool,
    answer: Option<fn() -> Value>,
    toolset: &'static str,
    risk: Risk,
    scope: Scope,
    needs: Option<HelperClass>,
    or_needs: Option<HelperClass>,
    is_there: Option<IsThere>,
    syncs_state: bool,
    makes_target: bool,
    remembers: bool,
    hears_offers: bool,
    task_support: TaskSupport,
    aliases: Vec<Alias>,
    long: bool,
    headers: Vec<(String, Vec<String>)>,
    function: Box<Function>,
    reading: Option<Reading>,
}

/// Reads arguments and runs nothing.
type Reading = fn(Map<String, Value>) -> std::result::Result<(), ToolError>;

/// A tool's name and parameters in the `StartOS` dialect.
#[derive(Debug, Clone, Copy)]
pub struct Alias {
    /// What it is called there.
    pub name: &'static str,
    /// Their parameter, ours.
    pub parameters: &'static [(&'static str, &'static str)],
    /// What it says there by its name, and here by these arguments.
    pub fixed: &'static [(&'static str, bool)],
    /// The argument, and its value, that a call without any has here.
    pub bare: Option<(&'static str, &'static str)>,
    /// What it takes there, and what says nothing here: taken and left aside, with its type.
    pub unused: &'static [(&'static str, &'static str)],
    /// Credentials that it takes there, and that no model has here: such a call is refused.
    pub secrets: &'static [&'static str],
}

impl Tool {
    /// A tool with this definition.
    pub fn new(definition: protocol::Tool, risk: Risk, function: Box<Function>) -> Self {
        Self {
            definition,
            answer: None,
            toolset: "",
            risk,
            scope: Scope::default(),
            needs: None,
            or_needs: None,
            is_there: None,
            syncs_state: false,
            makes_target: false,
            remembers: false,
            hears_offers: false,
            task_support: TaskSupport::Never,
            aliases: Vec::new(),
            long: false,
            headers: Vec::new(),
            function,
            reading: None,
        }
    }

    /// How its arguments are read, beside its function.
    pub(super) fn reading(mut self, reading: Reading) -> Self {
        self.reading = Some(reading);
        self
    }

    /// Whether its function would be run with these arguments, and runs nothing: before somebody is asked about
    /// the call, or it is kept for later. A tool that was made without a table reads its own when it runs.
    ///
    /// # Errors
    /// The words that the call would be answered with.
    pub fn check_arguments(
        &self,
        mut arguments: Map<String, Value>,
    ) -> std::result::Result<(), ToolError> {
        self.drop_noise(&mut arguments);
        self.reading.map_or(Ok(()), |reading| reading(arguments))
    }

    /// Runs it.
    pub fn run(
        &self,
        _: Permit,
        mut arguments: Map<String, Value>,
        cx: Cx,
    ) -> BoxFuture<Result<Answer>> {
        self.drop_noise(&mut arguments);
        (self.function)(arguments, cx)
    }

    /// All that is known of it but the schema of its answers.
    pub fn definition(&self) -> &protocol::Tool {
        &self.definition
    }

    /// The same with that schema. It is made when somebody looks at it: at a start the schemas of all tools took
    /// half of the instructions, and only lists show them.
    pub fn described(&self) -> protocol::Tool {
        let mut described = self.definition.clone();
        let schema = self.answer.map(|answer| answer());
        // Only an object can be structured content in every revision.
        let is_object =
            |schema: &Value| schema.get("type").and_then(Value::as_str) == Some("object");
        described.output_schema = schema.filter(is_object);
        described
    }

    /// What `tools/list` shows: of its answers the form and not the words, which programs do not read and models
    /// would have in mind with each of their turns.
    pub fn listed(&self) -> protocol::Tool {
        let mut listed = self.described();
        if let Some(schema) = &mut listed.output_schema {
            schema::wordless(schema);
        }
        listed
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// The group that it belongs to; empty where nobody has named it.
    pub fn toolset(&self) -> &'static str {
        self.toolset
    }

    /// Its class.
    pub fn risk(&self) -> Risk {
        self.risk
    }

    /// What of the box it is about.
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// The class of the helper's operations without which it can do nothing, if there is one.
    pub fn needs(&self) -> Option<HelperClass> {
        self.needs
    }

    /// Another class of operations with which it can do something as well.
    pub fn or_needs(&self) -> Option<HelperClass> {
        self.or_needs
    }

    /// Whether what it stands on is there at the moment.
    pub(super) fn is_there(&self) -> bool {
        self.is_there.as_ref().is_none_or(|is_there| is_there())
    }

    pub(super) fn set_is_there(&mut self, is_there: IsThere) {
        self.is_there = Some(is_there);
    }

    pub(super) fn set_or_needs(&mut self, class: HelperClass) {
        self.or_needs = Some(class);
    }

    pub(super) fn set_needs(&mut self, class: HelperClass) {
        self.needs = Some(class);
    }

    /// What a call of it is about, such as a container's name, if it names something.
    pub fn target<'a>(&self, arguments: &'a Map<String, Value>) -> Option<&'a str> {
        let named = |name: &str| arguments.get(name)?.as_str();
        match self.scope {
            Scope::Container(argument) => named(argument),
            Scope::HostOr(argument) => named(argument).or_else(|| named("unit")),
            Scope::Box | Scope::Host | Scope::Within => {
                ["unit", "pointer"].into_iter().find_map(named)
            }
        }
    }

    /// Whether its answer waits until the state shows its effect.
    pub fn syncs_state(&self) -> bool {
        self.syncs_state
    }

    /// Whether it can make what its calls are about, so that this need not exist before.
    pub fn makes_target(&self) -> bool {
        self.makes_target
    }

    /// Whether its questions may carry state from one round to the next.
    pub fn remembers(&self) -> bool {
        self.remembers
    }

    /// Whether it is told what its caller may propose.
    pub fn hears_offers(&self) -> bool {
        self.hears_offers
    }

    /// Whether its calls may become tasks.
    pub fn task_support(&self) -> TaskSupport {
        self.task_support
    }

    /// Whether its calls may take longer than clients wait, and then go on as jobs.
    pub fn is_long(&self) -> bool {
        self.long
    }

    pub(super) fn set_long(&mut self) {
        self.long = true;
    }

    /// The arguments that a 2026-07-28 client repeats as `Mcp-Param-*`: header name and path.
    pub fn header_parameters(&self) -> &[(String, Vec<String>)] {
        &self.headers
    }

    /// The names that it answers to in the `StartOS` dialect.
    pub fn aliases(&self) -> &[Alias] {
        &self.aliases
    }

    /// What `tools/list` shows in that dialect, by one of its names there.
    pub fn listed_as(&self, alias: Alias) -> protocol::Tool {
        let mut listed = self.listed();
        alias.name.clone_into(&mut listed.name);
        for (theirs, ours) in alias.parameters {
            schema::rename(&mut listed.input_schema, ours, theirs);
        }
        for (ours, _) in alias.fixed {
            schema::take_out(&mut listed.input_schema, ours);
        }
        for (theirs, kind) in alias.unused {
            schema::add(&mut listed.input_schema, theirs, kind);
        }
        listed
    }

    /// The name of the `StartOS` dialect that it was called by, if it was called so.
    pub fn alias(&self, called: &str) -> Option<Alias> {
        let mut aliases = self.aliases.iter();
        aliases.find(|alias| alias.name == called).copied()
    }

    /// Renames the dialect's parameters to ours; a call by our own name is left as it is.
    pub fn translate(
        alias: Option<Alias>,
        arguments: &mut Map<String, Value>,
    ) -> std::result::Result<(), ToolError> {
        let Some(alias) = alias else {
            return Ok(());
        };
        // Nothing would be encrypted or opened with it, and who sends one believes that it is.
        if let Some(secret) = alias.secrets.iter().find(|name| given(arguments, name)) {
            let words = format!("`{secret}` is not taken here, for credentials never pass a model");
            let hint = "Nothing was done. Leave it out: the owner of the box names a file for it.";
            return Err(ToolError::new(words).hint(hint));
        }
        let unused = alias.unused.iter().map(|(theirs, _)| theirs);
        for theirs in unused.chain(alias.secrets) {
            arguments.remove(*theirs);
        }
        for (theirs, ours) in alias.parameters {
            if let Some(value) = arguments.remove(*theirs) {
                arguments.entry(*ours).or_insert(value);
            }
        }
        if let Some((ours, value)) = alias.bare.filter(|_| arguments.is_empty()) {
            arguments.insert(ours.to_owned(), Value::from(value));
        }
        for (ours, value) in alias.fixed {
            arguments.insert((*ours).to_owned(), Value::Bool(*value));
        }
        Ok(())
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

    pub(super) fn set_syncs_state(&mut self) {
        self.syncs_state = true;
    }

    pub(super) fn set_makes_target(&mut self) {
        self.makes_target = true;
    }

    pub(super) fn set_remembers(&mut self) {
        self.remembers = true;
    }

    pub(super) fn set_hears_offers(&mut self) {
        self.hears_offers = true;
    }

    pub(super) fn set_task_support(&mut self, support: TaskSupport) {
        self.task_support = support;
    }

    pub(super) fn definition_mut(&mut self) -> &mut protocol::Tool {
        &mut self.definition
    }

    /// Reads the header parameters out of the schema; a wrong annotation would make clients drop the tool, and a
    /// schema that they cannot read too. Those of answers come from types of ours alone, and a test looks at them.
    pub(super) fn check(&mut self) -> std::result::Result<(), String> {
        protocol::check_dialect(&self.definition.input_schema)?;
        self.headers = protocol::header_parameters(&self.definition.input_schema)?;
        Ok(())
    }

    /// Some clients add arguments of their own to every call.
    fn drop_noise(&self, arguments: &mut Map<String, Value>) {
        const NOISE: &[&str] = &["toolCallId"];
        let known = self.definition.input_schema.get("properties");
        for name in NOISE {
            if known.and_then(|k| k.get(*name)).is_none() {
                arguments.remove(*name);
            }
        }
    }
}

/// Whether an argument says something: programs fill in what they have nothing for.
fn given(arguments: &Map<String, Value>, name: &str) -> bool {
    let value = arguments.get(name);
    value.is_some_and(|value| !value.is_null() && value.as_str() != Some(""))
}
