//! A tool's name and parameters in the `StartOS` dialect, and how a call by that name is understood.

use serde_json::{Map, Value};

use super::error::ToolError;
use super::schema;
use crate::protocol::ToolDefinition;

/// A tool's name and parameters in the `StartOS` dialect.
#[derive(Debug, Clone, Copy)]
pub struct Alias {
    /// Its name in the dialect.
    pub name: &'static str,
    /// Pairs of a parameter of the dialect and the corresponding one of this server.
    pub parameters: &'static [(&'static str, &'static str)],
    /// The arguments of this server that the name in the dialect implies.
    pub fixed: &'static [(&'static str, bool)],
    /// The argument and its value that a call without arguments has on this server.
    pub bare: Option<(&'static str, &'static str)>,
    /// Parameters of the dialect that have no meaning here, with their types: they are accepted and ignored.
    pub unused: &'static [(&'static str, &'static str)],
    /// Parameters of the dialect, the first first, whose text is part of the name of a container inside the container of
    /// the call. They are in `unused` too: the call's container is replaced by that one.
    pub inside: &'static [&'static str],
    /// Credentials that the dialect accepts. Here a call with one is refused, because models must not have them.
    pub secrets: &'static [&'static str],
}

impl Alias {
    /// Renames the dialect's parameters to those of this server.
    ///
    /// # Errors
    /// An error for the model if a credential is given.
    pub fn translate(self, arguments: &mut Map<String, Value>) -> Result<(), ToolError> {
        // Ignoring it would be wrong: nothing would be encrypted or decrypted, but the caller would assume that it
        // was.
        if let Some(secret) = self.secrets.iter().find(|name| has_value(arguments, name)) {
            let words =
                format!("`{secret}` is not accepted: credentials must not pass through a model");
            let hint = "Nothing was done. Leave it out: the owner of the server configures a file that contains it.";
            return Err(ToolError::new(words).hint(hint));
        }
        let unused = self.unused.iter().map(|(theirs, _)| theirs);
        for theirs in unused.chain(self.secrets) {
            arguments.remove(*theirs);
        }
        for (theirs, ours) in self.parameters {
            if let Some(value) = arguments.remove(*theirs) {
                arguments.entry(*ours).or_insert(value);
            }
        }
        if let Some((ours, value)) = self.bare.filter(|_| arguments.is_empty()) {
            arguments.insert(ours.to_owned(), Value::from(value));
        }
        for (ours, value) in self.fixed {
            arguments.insert((*ours).to_owned(), Value::Bool(*value));
        }
        Ok(())
    }

    /// Returns an entry of `tools/list` under this name, with the parameters of the dialect.
    pub fn applied_to(self, mut entry: ToolDefinition) -> ToolDefinition {
        self.name.clone_into(&mut entry.name);
        for (theirs, ours) in self.parameters {
            schema::rename(&mut entry.input_schema, ours, theirs);
        }
        for (ours, _) in self.fixed {
            schema::take_out(&mut entry.input_schema, ours);
        }
        for (theirs, kind) in self.unused {
            schema::add(&mut entry.input_schema, theirs, kind);
        }
        entry
    }

    /// Returns what the arguments say about a container inside the container of the call. A value that is not a text is
    /// part of no name, so the call is refused.
    pub fn name_inside(self, arguments: &Map<String, Value>) -> Option<String> {
        let mut given = self.inside.iter().filter(|name| has_value(arguments, name));
        let value = arguments.get(*given.next()?)?;
        Some(
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned),
        )
    }
}

/// Whether an argument has a value: programs send null or empty strings for unset ones.
fn has_value(arguments: &Map<String, Value>, name: &str) -> bool {
    let value = arguments.get(name);
    value.is_some_and(|value| !value.is_null() && value.as_str() != Some(""))
}
