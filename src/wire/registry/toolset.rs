//! A toolset: a group of tools over one backend. A tool is one row of the table and about ten lines next to it.

use std::future::Future;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{
    alias::Alias,
    answer::Answer,
    cx::Cx,
    error::{Result, ToolError},
    json_words::json_words,
    schema,
    scope::Scope,
    task::TaskSupport,
    tool::{AvailabilityCheck, Tool},
};
use crate::protocol::{self, ToolAnnotations};
use gatewren_base::config::{HelperClass, Risk};

/// Tools over a backend `B`, as a table.
pub struct Toolset<B> {
    name: &'static str,
    backend: Arc<B>,
    tools: Vec<Tool>,
}

impl<B: Send + Sync + 'static> Toolset<B> {
    /// Creates an empty table over a backend.
    pub fn new(backend: Arc<B>) -> Self {
        Self {
            name: "",
            backend,
            tools: Vec::new(),
        }
    }

    /// Names the toolset, so that policies can refer to it. This applies to the rows that follow.
    #[must_use]
    pub fn with_name(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// Adds a row that answers with data. The doc comment of the arguments is the description.
    #[must_use]
    pub fn tool<A, R, F>(
        self,
        name: &'static str,
        risk: Risk,
        function: fn(Arc<B>, A, Cx) -> F,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        R: Serialize + JsonSchema + Send + 'static,
        F: Future<Output = Result<R>> + Send + 'static,
    {
        self.row::<A, _, _>(name, risk, move |backend, arguments, cx| {
            let running = function(backend, arguments, cx);
            async move { Ok(Answer::data(&running.await?)?) }
        })
        .returning::<R>()
    }

    /// Adds a row that builds its own answer.
    #[must_use]
    pub fn answering<A, F>(
        self,
        name: &'static str,
        risk: Risk,
        function: fn(Arc<B>, A, Cx) -> F,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        F: Future<Output = Result<Answer>> + Send + 'static,
    {
        self.row::<A, _, _>(name, risk, function)
    }

    /// Sets the type of data in the last row's answer.
    #[must_use]
    pub fn returning<R: JsonSchema>(self) -> Self {
        self.last(|tool| tool.set_answer(schema::of_answer::<R>))
    }

    /// Replaces the last row's schema.
    #[must_use]
    pub fn with_schema(self, schema: Value) -> Self {
        self.last(|tool| tool.definition_mut().input_schema = schema)
    }

    /// Sets the last row's title.
    #[must_use]
    pub fn titled(self, title: &str) -> Self {
        self.last(|tool| tool.definition_mut().title = Some(title.to_owned()))
    }

    /// Sets the helper class that the last row requires.
    #[must_use]
    pub fn through(self, class: HelperClass) -> Self {
        self.last(|tool| tool.set_needs(class))
    }

    /// Sets another helper class with which the last row is also available.
    #[must_use]
    pub fn or_through(self, class: HelperClass) -> Self {
        self.last(|tool| tool.set_or_needs(class))
    }

    /// Makes the last row available only while this function returns true; it is called at every lookup.
    #[must_use]
    pub fn available_while(self, is_available: AvailabilityCheck) -> Self {
        self.last(|tool| tool.set_is_available(is_available))
    }

    /// Refuses calls of the rows with these names, each with the reason.
    #[must_use]
    pub fn refusing(mut self, refused: &[(&str, &'static str)]) -> Self {
        for tool in &mut self.tools {
            let found = refused.iter().find(|(name, _)| *name == tool.name());
            if let Some((_, why)) = found {
                tool.set_refusal(why);
            }
        }
        self
    }

    /// Lets calls use this name too, for the last row. `tools/list` does not show it, and the audit has the tool's own.
    #[must_use]
    pub fn also_named(self, name: &'static str) -> Self {
        self.last(|tool| tool.set_other_name(name))
    }

    /// Adds a name of the `StartOS` dialect to the last row, with pairs of (dialect, own) parameters.
    #[must_use]
    pub fn startos(
        self,
        alias: &'static str,
        parameters: &'static [(&'static str, &'static str)],
    ) -> Self {
        self.startos_with(alias, parameters, &[])
    }

    /// The same for a name that implies arguments here: a row may have several such names.
    #[must_use]
    pub fn startos_with(
        self,
        name: &'static str,
        parameters: &'static [(&'static str, &'static str)],
        fixed: &'static [(&'static str, bool)],
    ) -> Self {
        self.last(|tool| {
            tool.add_alias(Alias {
                name,
                parameters,
                fixed,
                bare: None,
                unused: &[],
                inside: &[],
                secrets: &[],
            });
        })
    }

    /// Sets the argument that a call without arguments has under the last name of that dialect.
    #[must_use]
    pub fn without_arguments(self, ours: &'static str, value: &'static str) -> Self {
        self.last_alias(|alias| alias.bare = Some((ours, value)))
    }

    /// Sets the parameters of the last name of that dialect that are accepted and ignored here.
    #[must_use]
    pub fn ignoring_arguments(self, unused: &'static [(&'static str, &'static str)]) -> Self {
        self.last_alias(|alias| alias.unused = unused)
    }

    /// Sets the ignored parameters of the last name of that dialect that name a container inside the container of the
    /// call, if one is there.
    #[must_use]
    pub fn naming_inside(self, inside: &'static [&'static str]) -> Self {
        self.last_alias(|alias| alias.inside = inside)
    }

    /// Sets the credentials that the last name of that dialect accepts; here a call with one is refused.
    #[must_use]
    pub fn refusing_secrets(self, secrets: &'static [&'static str]) -> Self {
        self.last_alias(|alias| alias.secrets = secrets)
    }

    fn last_alias(self, change: impl FnOnce(&mut Alias)) -> Self {
        self.last(|tool| tool.last_alias().map_or((), change))
    }

    /// Sets the part of the host that the last row is about.
    #[must_use]
    pub fn about(self, scope: Scope) -> Self {
        self.last(|tool| tool.set_scope(scope))
    }

    /// Makes the last row's answer wait until the state reflects its effect.
    #[must_use]
    pub fn syncs_state(self) -> Self {
        self.last(Tool::set_syncs_state)
    }

    /// Declares that all that the last row does is to run one command.
    #[must_use]
    pub fn only_runs_command(self) -> Self {
        self.last(Tool::set_only_runs_command)
    }

    /// Declares that the last row can create the target of its calls.
    #[must_use]
    pub fn makes_target(self) -> Self {
        self.last(Tool::set_makes_target)
    }

    /// Declares that the last row's questions carry state from one round to the next.
    #[must_use]
    pub fn remembers(self) -> Self {
        self.last(Tool::set_remembers)
    }

    /// Adds what the caller may propose to the last row's context (`Cx::offers`).
    #[must_use]
    pub fn needs_offers(self) -> Self {
        self.last(Tool::set_needs_offers)
    }

    /// Declares that the last row's answer contains that of another tool, if the caller may call it without being asked
    /// (`Cx::may_include`).
    #[must_use]
    pub fn includes(self, other: &'static str) -> Self {
        self.last(|tool| tool.set_includes(other))
    }

    /// Adds the check of calls to be made later to the last row's context (`Cx::check_call`).
    #[must_use]
    pub fn checks_calls(self) -> Self {
        self.last(Tool::set_checks_calls)
    }

    /// Declares that calls of the last row reach other machines, as those of the classes scan and execute do.
    #[must_use]
    pub fn reaches_other_machines(self) -> Self {
        self.last(|tool| tool.definition_mut().annotations.open_world_hint = true)
    }

    /// Lets long calls of the last row become tasks, for clients that support tasks.
    #[must_use]
    pub fn offers_task(self) -> Self {
        self.last(|tool| tool.set_task_support(TaskSupport::Offered))
    }

    /// Declares that calls of the last row may take longer than clients wait: the work then continues as a job
    /// (`Cx::long_call`), or as a task for clients that support tasks.
    #[must_use]
    pub fn long(self) -> Self {
        self.offers_task().last(Tool::set_long)
    }

    /// Makes calls of the last row tasks; only clients that support tasks can call it.
    #[must_use]
    pub fn requires_task(self) -> Self {
        self.last(|tool| tool.set_task_support(TaskSupport::Required))
    }

    /// Returns the rows.
    pub fn into_tools(self) -> Vec<Tool> {
        self.tools
    }

    fn last(mut self, edit: impl FnOnce(&mut Tool)) -> Self {
        if let Some(tool) = self.tools.last_mut() {
            edit(tool);
        }
        self
    }

    fn row<A, F, Fut>(mut self, name: &'static str, risk: Risk, function: F) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(Arc<B>, A, Cx) -> Fut + Copy + Send + Sync + 'static,
        Fut: Future<Output = Result<Answer>> + Send + 'static,
    {
        let (input_schema, description) = schema::of_arguments::<A>();
        let definition = definition(name, risk, input_schema, description);
        let backend = self.backend.clone();
        let run = move |arguments: Map<String, Value>, cx: Cx| {
            let backend = backend.clone();
            let read = read_arguments::<A>(arguments);
            Box::pin(async move { function(backend, read?, cx).await })
                as super::resource::BoxFuture<_>
        };
        let mut tool = Tool::new(definition, risk, Box::new(run));
        tool.set_toolset(self.name);
        let tool = tool.reading(|arguments| read_arguments::<A>(arguments).map(drop));
        self.tools.push(tool);
        self
    }
}

/// Not generic, so that it is compiled once and not for each row; the same applies to everything below.
fn definition(
    name: &str,
    risk: Risk,
    input_schema: Value,
    description: Option<String>,
) -> protocol::ToolDefinition {
    protocol::ToolDefinition {
        name: name.to_owned(),
        title: None,
        description: description.unwrap_or_default(),
        input_schema,
        output_schema: None,
        annotations: hints(risk),
        meta: None,
    }
}

/// The hints of `tools/list`; they cannot contradict the policy because both come from the class.
fn hints(risk: Risk) -> ToolAnnotations {
    let reads = matches!(risk, Risk::Read | Risk::Scan | Risk::Reveal);
    ToolAnnotations {
        read_only_hint: Some(reads),
        destructive_hint: (!reads).then_some(matches!(risk, Risk::Disrupt | Risk::Execute)),
        idempotent_hint: (!reads).then_some(false),
        open_world_hint: matches!(risk, Risk::Scan | Risk::Execute),
    }
}

/// Parses arguments into their struct; the error names the field and the rule.
fn read_arguments<A: DeserializeOwned>(
    arguments: Map<String, Value>,
) -> std::result::Result<A, ToolError> {
    serde_path_to_error::deserialize(plain(arguments)).map_err(invalid)
}

fn plain(arguments: Map<String, Value>) -> Value {
    let mut arguments = Value::Object(arguments);
    whole_numbers(&mut arguments);
    arguments
}

fn invalid(error: serde_path_to_error::Error<serde_json::Error>) -> ToolError {
    let path = error.path().to_string();
    let rule = shorten(json_words(&error.into_inner().to_string()));
    let place = if path == "." {
        String::new()
    } else {
        format!(" `{path}`")
    };
    ToolError::new(format!("invalid argument{place}: {rule}"))
        .hint("Nothing was done. Compare the arguments with the tool's inputSchema and call again.")
}

/// Shortens an error: it quotes the invalid value, which may be as long as the request.
fn shorten(rule: String) -> String {
    /// The maximum length in characters; this is enough to show the error.
    const LETTERS: usize = 300;
    if rule.chars().count() <= LETTERS {
        return rule;
    }
    let (begin, end) = (LETTERS * 2 / 3, LETTERS / 3);
    let head: String = rule.chars().take(begin).collect();
    let skipped = rule.chars().count() - end;
    let tail: String = rule.chars().skip(skipped).collect();
    format!("{head} [...] {tail}")
}

/// Replaces `30.0` by `30`: JSON Schema treats both as integers, and some clients write every number as `30.0`,
/// which serde would reject.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let float = number.as_f64().filter(|_| number.is_f64());
            let whole = float.filter(|f| f.fract() == 0.0 && f.abs() <= MAX_SAFE_INTEGER);
            // Adding zero turns a negative zero into a positive one.
            let digits = whole.and_then(|f| format!("{:.0}", f + 0.0).parse::<i64>().ok());
            if let Some(integer) = digits {
                *value = integer.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(members) => members.values_mut().for_each(whole_numbers),
        _ => {}
    }
}

/// 2^53 - 1: up to here, floats represent every integer exactly.
const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_integer_may_be_written_with_a_fraction_of_zero() {
        #[derive(Debug, PartialEq, Deserialize)]
        struct Arguments {
            count: u32,
            list: Vec<i64>,
            share: f64,
        }
        let read = |value: Value| read_arguments::<Arguments>(value.as_object().unwrap().clone());
        let arguments = read(json!({"count": 30.0, "list": [-0.0, -7.0], "share": 2.0}));
        let wanted = Arguments {
            count: 30,
            list: vec![0, -7],
            share: 2.0,
        };
        assert_eq!(arguments.ok(), Some(wanted));
        assert!(read(json!({"count": 30.5, "list": [], "share": 1})).is_err());
        assert!(read(json!({"count": 1e300, "list": [], "share": 1})).is_err());
    }
}
