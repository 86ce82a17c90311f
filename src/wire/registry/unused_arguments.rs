//! Drops the arguments of a call that stand for nothing.

use serde_json::{Map, Value};

use super::scope::Scope;
use gatewren_base::config::Risk;

/// The argument with which an agent states the reason of a call. Every tool accepts it.
pub const REASON: &str = "reason";

/// The schema of a tool's arguments, and what decides about empty ones.
pub(super) struct ArgumentRules<'a> {
    pub schema: &'a Value,
    pub scope: Scope,
    pub risk: Risk,
}

impl ArgumentRules<'_> {
    /// Drops what stands for nothing. Some clients add their own arguments to every call, and the
    /// call in a schedule or a proposal may have a reason. Models that must name each
    /// argument of a tool, as in a strict mode, send null, an empty text or an empty list for those that they do not use.
    pub fn drop_unused(&self, arguments: &mut Map<String, Value>) {
        const NOISE: &[&str] = &["toolCallId", REASON];
        let known = self.schema.get("properties").and_then(Value::as_object);
        let property = |name: &str| known.and_then(|known| known.get(name));
        let required = self.schema.get("required").and_then(Value::as_array);
        let is_required =
            |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
        // An argument of any type may have null as its value.
        let is_typed = |name: &str| property(name).is_some_and(|known| known.get("type").is_some());
        let is_empty = |name: &str, value: &Value| {
            property(name)
                .is_some_and(|known| is_empty(value, known) && self.excludes_empty(name, known))
        };
        arguments.retain(|name, value| {
            let is_noise = NOISE.contains(&name.as_str()) && property(name).is_none();
            let is_unused = value.is_null() && is_typed(name) || is_empty(name, value);
            !(is_noise || is_unused && !is_required(name))
        });
    }

    /// Whether an empty text or list can only mean that the argument is not used. A target never counts, and a pattern
    /// describes an identifier: without it a tool that changes something could change everything.
    fn excludes_empty(&self, name: &str, schema: &Value) -> bool {
        if self.scope.argument() == Some(name) || name == "container" {
            return false;
        }
        let at_least = |key: &str| schema.get(key).and_then(Value::as_u64) >= Some(1);
        let choices = schema.get("enum").and_then(Value::as_array);
        let only_reads = matches!(self.risk, Risk::Read | Risk::Scan | Risk::Reveal);
        at_least("minLength")
            || at_least("minItems")
            || choices.is_some_and(|choices| choices.iter().all(|choice| choice != ""))
            || only_reads && schema.get("pattern").is_some()
    }
}

/// Whether a value is an empty text or list, and its schema is for such values: an empty list instead of a text is an
/// error.
fn is_empty(value: &Value, schema: &Value) -> bool {
    let empty = match value {
        Value::String(text) if text.is_empty() => "string",
        Value::Array(items) if items.is_empty() => "array",
        _ => return false,
    };
    match schema.get("type") {
        Some(Value::Array(types)) => types.iter().any(|one| one == empty),
        one => one.is_some_and(|one| one == empty),
    }
}
