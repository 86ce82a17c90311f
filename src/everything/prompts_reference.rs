//! Prompts with titles, with optional and dependent arguments, and with a resource created for them.

use serde_json::{Map, Value};

use super::{
    dynamic::{self, Family},
    prompts::{row, says, shows, text},
};
use crate::protocol::{Content, Prompt, PromptArgument, PromptMessage};
use crate::registry::{Completion, PromptRow, Reference, Result, ToolError};

const COMPLETABLE: &str = "completable-prompt";
const RESOURCE: &str = "resource-prompt";

/// The departments and their employees.
const DEPARTMENTS: [(&str, [&str; 3]); 4] = [
    ("Engineering", ["Alice", "Bob", "Charlie"]),
    ("Sales", ["David", "Eve", "Frank"]),
    ("Marketing", ["Grace", "Henry", "Iris"]),
    ("Support", ["John", "Kim", "Lee"]),
];

/// The prompts, as a table: name, title, description, arguments (with their descriptions, and whether they are
/// required), and the function that writes it.
#[rustfmt::skip]
pub fn rows() -> Vec<PromptRow> {
    vec![
        titled("simple-prompt", "Simple prompt", "One message without arguments", &[],
            |_| Ok(vec![says("This is a simple prompt without arguments.")])),
        titled("args-prompt", "Prompt with arguments", "One argument that must be given, and one that may be",
            &[("city", "A city", true), ("state", "The state that it lies in", false)], |given| Ok(weather(given))),
        titled(COMPLETABLE, "Prompt with completions", "The first argument narrows the values of the second",
            &[("department", "A department", true), ("name", "Somebody who works there", true)], |given| Ok(promotion(given))),
        titled(RESOURCE, "Prompt with a resource", "A message that holds a resource, made when it is asked for",
            &[("resourceType", "Text or Blob", true), ("resourceId", "An integer above zero", true)], resource),
    ]
}

fn titled(
    name: &str,
    title: &str,
    description: &str,
    arguments: &[(&str, &str, bool)],
    write: fn(&Map<String, Value>) -> Result<Vec<PromptMessage>>,
) -> PromptRow {
    let arguments = arguments
        .iter()
        .map(|(name, description, required)| PromptArgument {
            name: (*name).to_owned(),
            description: Some((*description).to_owned()),
            required: *required,
        });
    let definition = Prompt {
        name: name.to_owned(),
        title: Some(title.to_owned()),
        description: Some(description.to_owned()),
        arguments: arguments.collect(),
    };
    row(definition, move |given, _| write(given))
}

fn weather(given: &Map<String, Value>) -> Vec<PromptMessage> {
    let place: Vec<&str> = [text(given, "city"), text(given, "state")]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect();
    vec![says(format!(
        "What is the weather in {}?",
        place.join(", ")
    ))]
}

fn promotion(given: &Map<String, Value>) -> Vec<PromptMessage> {
    let (department, name) = (text(given, "department"), text(given, "name"));
    vec![says(format!(
        "Please make {name} the head of {department}."
    ))]
}

fn resource(given: &Map<String, Value>) -> Result<Vec<PromptMessage>> {
    let wanted = text(given, "resourceType");
    let family = Family::ALL
        .into_iter()
        .find(|family| family.name() == wanted);
    let (Some(family), Some(id)) = (family, dynamic::id(text(given, "resourceId"))) else {
        let words = "resourceType is Text or Blob, and resourceId is an integer above zero";
        return Err(ToolError::new(words).into());
    };
    let place = Content::Resource {
        resource: family.member(id),
        annotations: None,
    };
    Ok(vec![
        says(format!("Say what resource {id} holds:")),
        shows(place),
    ])
}

/// Completions for an argument of a prompt.
pub fn complete(asked: &Completion) -> Vec<String> {
    let Reference::Prompt(prompt) = &asked.reference else {
        return Vec::new();
    };
    let typed = asked.typed.as_str();
    match (prompt.as_str(), asked.argument.as_str()) {
        (COMPLETABLE, "department") => {
            starting(typed, DEPARTMENTS.map(|(department, _)| department))
        }
        (COMPLETABLE, "name") => {
            let department = text(&asked.context, "department");
            let found = DEPARTMENTS
                .into_iter()
                .find(|(name, _)| *name == department);
            found.map_or_else(Vec::new, |(_, names)| starting(typed, names))
        }
        (RESOURCE, "resourceType") => starting(typed, Family::ALL.map(Family::name)),
        (RESOURCE, "resourceId") if dynamic::id(typed).is_some() => vec![typed.to_owned()],
        _ => Vec::new(),
    }
}

fn starting<const N: usize>(typed: &str, values: [&str; N]) -> Vec<String> {
    let typed = typed.to_lowercase();
    let fits = |value: &&str| value.to_lowercase().starts_with(&typed);
    values.into_iter().filter(fits).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_argument_narrows_the_second() {
        let values = |argument: &str, typed: &str, context: Value| {
            complete(&Completion {
                reference: Reference::Prompt(COMPLETABLE.to_owned()),
                argument: argument.to_owned(),
                typed: typed.to_owned(),
                context: context.as_object().unwrap().clone(),
            })
        };
        assert_eq!(values("department", "s", json!({})), ["Sales", "Support"]);
        assert_eq!(
            values("name", "e", json!({ "department": "Sales" })),
            ["Eve"]
        );
        assert!(values("name", "", json!({})).is_empty());
    }
}
