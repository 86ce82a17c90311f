//! Prompts: without arguments, with them, with content in place, and one that asks first.

use serde_json::{Map, Value};

use super::{
    elicitations::given_name,
    media::picture,
    rounds::{NAME, ask_name},
};
use crate::protocol::{Content, Prompt, PromptArgument, PromptMessage, ResourceContents, Role};
use crate::registry::{Completion, Cx, PromptAnswer, PromptRow, Reference, Result};

/// What arguments of `test_prompt_with_arguments` can be completed to.
const VALUES: [&str; 4] = ["paris", "party", "test", "testValue1"];

const WITH_ARGUMENTS: &str = "test_prompt_with_arguments";

type Write = fn(&Map<String, Value>, &Cx) -> Result<Vec<PromptMessage>>;

/// The prompts, as a table: name, what it is, its arguments with their meaning, and what writes it.
#[rustfmt::skip]
pub fn rows() -> Vec<PromptRow> {
    const NONE: &[(&str, &str)] = &[];
    vec![
        row("test_simple_prompt", "One message without arguments", NONE, simple),
        row(WITH_ARGUMENTS, "One message with two arguments in it",
            &[("arg1", "The first"), ("arg2", "The second")], with_arguments),
        row("test_prompt_with_embedded_resource", "A message that holds a resource's contents",
            &[("resourceUri", "What the resource is called")], with_resource),
        row("test_prompt_with_image", "A message that holds a picture", NONE, with_image),
        row("test_input_required_result_prompt", "A message to somebody whose name it asks for", NONE, with_input),
    ]
}

/// Values for an argument of a prompt.
pub fn complete(asked: &Completion) -> Vec<String> {
    if asked.reference != Reference::Prompt(WITH_ARGUMENTS.to_owned()) {
        return Vec::new();
    }
    let typed = asked.typed.to_lowercase();
    let fits = |value: &&str| value.to_lowercase().starts_with(&typed);
    VALUES.into_iter().filter(fits).map(str::to_owned).collect()
}

fn row(
    name: &'static str,
    description: &'static str,
    arguments: &[(&str, &str)],
    write: Write,
) -> PromptRow {
    let arguments = arguments.iter().map(|(name, description)| PromptArgument {
        name: (*name).to_owned(),
        description: Some((*description).to_owned()),
        required: true,
    });
    let definition = Prompt {
        name: name.to_owned(),
        title: None,
        description: Some(description.to_owned()),
        arguments: arguments.collect(),
    };
    let function = move |arguments: Map<String, Value>, cx: Cx| {
        let written = write(&arguments, &cx).map(|messages| PromptAnswer {
            description: Some(description.to_owned()),
            messages,
        });
        Box::pin(std::future::ready(written)) as crate::registry::BoxFuture<_>
    };
    PromptRow {
        definition,
        function: Box::new(function),
    }
}

fn simple(_: &Map<String, Value>, _: &Cx) -> Result<Vec<PromptMessage>> {
    Ok(vec![says("This is a simple prompt for testing.")])
}

fn with_arguments(given: &Map<String, Value>, _: &Cx) -> Result<Vec<PromptMessage>> {
    let (first, second) = (text(given, "arg1"), text(given, "arg2"));
    let words = format!("Prompt with arguments: arg1='{first}', arg2='{second}'");
    Ok(vec![says(words)])
}

fn with_resource(given: &Map<String, Value>, _: &Cx) -> Result<Vec<PromptMessage>> {
    let resource = Content::Resource {
        resource: ResourceContents {
            uri: text(given, "resourceUri").to_owned(),
            mime_type: Some("text/plain".to_owned()),
            text: Some("Embedded resource content for testing.".to_owned()),
            ..ResourceContents::default()
        },
        annotations: None,
    };
    Ok(vec![
        shows(resource),
        says("Please process the embedded resource above."),
    ])
}

fn with_image(_: &Map<String, Value>, _: &Cx) -> Result<Vec<PromptMessage>> {
    Ok(vec![
        shows(picture()),
        says("Please analyze the image above."),
    ])
}

fn with_input(_: &Map<String, Value>, cx: &Cx) -> Result<Vec<PromptMessage>> {
    match given_name(cx.inputs(), NAME) {
        Some(name) => Ok(vec![says(format!("Please greet {name}."))]),
        None => Err(ask_name().into()),
    }
}

fn text<'a>(given: &'a Map<String, Value>, name: &str) -> &'a str {
    given.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn says(words: impl Into<String>) -> PromptMessage {
    shows(Content::text(words))
}

fn shows(content: Content) -> PromptMessage {
    PromptMessage {
        role: Role::User,
        content,
    }
}
