//! Prompts: without arguments, with arguments, with embedded content, and one that first asks the person.

use serde_json::{Map, Value, json};

use super::{
    elicitations::{FORM, accepted_text, form, refused},
    media::picture,
};
use crate::protocol::{
    Content, InputRequired, Prompt, PromptArgument, PromptMessage, ResourceContents, Role,
};
use crate::registry::{BoxFuture, Completion, Cx, PromptAnswer, PromptRow, Reference, Result};

/// The completions for arguments of [`WITH_ARGUMENTS`].
const VALUES: [&str; 4] = ["paris", "party", "test", "testValue1"];

const WITH_ARGUMENTS: &str = "test_prompt_with_arguments";

/// The prompts, as a table: name, description, arguments with their descriptions, and the function that writes
/// it.
#[rustfmt::skip]
pub fn rows() -> Vec<PromptRow> {
    vec![
        plain(definition("test_simple_prompt", "One message without arguments", &[]), simple),
        plain(definition(WITH_ARGUMENTS, "One message with two arguments in it",
            &[("arg1", "The first"), ("arg2", "The second")]), with_arguments),
        plain(definition("test_prompt_with_embedded_resource", "A message that holds a resource's contents",
            &[("resourceUri", "What the resource is called")]), with_resource),
        plain(definition("test_prompt_with_image", "A message that holds a picture", &[]), with_image),
        row(definition("test_input_required_result_prompt", "A message whose context it asks for", &[]), asking),
    ]
}

/// Completions for an argument of a prompt.
pub fn complete(asked: &Completion) -> Vec<String> {
    if asked.reference != Reference::Prompt(WITH_ARGUMENTS.to_owned()) {
        return Vec::new();
    }
    let typed = asked.typed.to_lowercase();
    let fits = |value: &&str| value.to_lowercase().starts_with(&typed);
    VALUES.into_iter().filter(fits).map(str::to_owned).collect()
}

fn definition(name: &str, description: &str, arguments: &[(&str, &str)]) -> Prompt {
    let arguments = arguments.iter().map(|(name, description)| PromptArgument {
        name: (*name).to_owned(),
        description: Some((*description).to_owned()),
        required: true,
    });
    Prompt {
        name: name.to_owned(),
        title: None,
        description: Some(description.to_owned()),
        arguments: arguments.collect(),
    }
}

/// A prompt that depends only on its arguments.
fn plain(definition: Prompt, write: fn(&Map<String, Value>) -> Vec<PromptMessage>) -> PromptRow {
    row(definition, move |arguments, _| Ok(write(arguments)))
}

/// A prompt with messages written by this function.
pub fn row(
    definition: Prompt,
    write: impl Fn(&Map<String, Value>, &Cx) -> Result<Vec<PromptMessage>> + Send + Sync + 'static,
) -> PromptRow {
    let description = definition.description.clone();
    let function = move |arguments: Map<String, Value>, cx: Cx| {
        let written = write(&arguments, &cx).map(|messages| PromptAnswer {
            description: description.clone(),
            messages,
        });
        Box::pin(std::future::ready(written)) as BoxFuture<_>
    };
    PromptRow {
        definition,
        needs: &[],
        function: Box::new(function),
    }
}

fn simple(_: &Map<String, Value>) -> Vec<PromptMessage> {
    vec![says("This is a simple prompt for testing.")]
}

fn with_arguments(given: &Map<String, Value>) -> Vec<PromptMessage> {
    let (first, second) = (text(given, "arg1"), text(given, "arg2"));
    let words = format!("Prompt with arguments: arg1='{first}', arg2='{second}'");
    let answer = Content::text("I have both arguments.");
    vec![
        says(words),
        PromptMessage {
            role: Role::Assistant,
            content: answer,
        },
    ]
}

fn with_resource(given: &Map<String, Value>) -> Vec<PromptMessage> {
    let resource = Content::Resource {
        resource: ResourceContents {
            uri: text(given, "resourceUri").to_owned(),
            mime_type: Some("text/plain".to_owned()),
            text: Some("The contents of a resource, in place.".to_owned()),
            ..ResourceContents::default()
        },
        annotations: None,
    };
    vec![shows(resource), says("Say what this resource holds.")]
}

fn with_image(_: &Map<String, Value>) -> Vec<PromptMessage> {
    vec![shows(picture()), says("Say what this picture shows.")]
}

fn asking(_: &Map<String, Value>, cx: &Cx) -> Result<Vec<PromptMessage>> {
    const KEY: &str = "user_context";
    let inputs = cx.inputs();
    if refused(inputs, KEY) {
        return Ok(vec![says("Answer without any context.")]);
    }
    if let Some(context) = accepted_text(inputs, KEY, "context") {
        return Ok(vec![says(format!("Answer in this context: {context}"))]);
    }
    let fields = json!({ "context": { "type": "string", "title": "Context" } });
    let question = form("What is the prompt for?", &fields, &["context"]);
    Err(InputRequired::new().ask(KEY, FORM, question).into())
}

/// An argument as text; empty if absent.
pub fn text<'a>(given: &'a Map<String, Value>, name: &str) -> &'a str {
    given.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A text from the user.
pub fn says(words: impl Into<String>) -> PromptMessage {
    shows(Content::text(words))
}

/// Content from the user.
pub fn shows(content: Content) -> PromptMessage {
    PromptMessage {
        role: Role::User,
        content,
    }
}
