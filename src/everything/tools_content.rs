//! Tools that return each kind of content, and one that fails.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::media::{picture, sound};
use crate::protocol::{Content, ResourceContents};
use crate::registry::{Answer, Cx, Result, Risk, ToolError, Toolset};

/// These tools have no state.
pub struct Samples;

/// The toolset, as a table.
pub fn tools() -> Toolset<Samples> {
    Toolset::over(Arc::new(Samples))
        .answering("test_simple_text", Risk::Read, text)
        .answering("test_image_content", Risk::Read, image)
        .answering("test_audio_content", Risk::Read, audio)
        .answering("test_embedded_resource", Risk::Read, embedded)
        .answering("test_multiple_content_types", Risk::Read, mixed)
        .answering("test_resource_link", Risk::Read, link)
        .answering("test_error_handling", Risk::Read, error)
}

/// Return one block of text.
#[derive(Deserialize, JsonSchema)]
struct Text {}

async fn text(_: Arc<Samples>, Text {}: Text, _: Cx) -> Result<Answer> {
    Ok(Answer::text("This is a simple text response for testing."))
}

/// Return a link to a resource.
#[derive(Deserialize, JsonSchema)]
struct Link {}

async fn link(_: Arc<Samples>, Link {}: Link, _: Cx) -> Result<Answer> {
    Ok(Answer::of(vec![Content::ResourceLink {
        uri: "test://static-text".to_owned(),
        name: "static-text".to_owned(),
        description: Some("A resource to be read".to_owned()),
        mime_type: Some("text/plain".to_owned()),
    }]))
}

/// Return one picture.
#[derive(Deserialize, JsonSchema)]
struct Image {}

async fn image(_: Arc<Samples>, Image {}: Image, _: Cx) -> Result<Answer> {
    Ok(Answer::of(vec![picture()]))
}

/// Return one sound.
#[derive(Deserialize, JsonSchema)]
struct Audio {}

async fn audio(_: Arc<Samples>, Audio {}: Audio, _: Cx) -> Result<Answer> {
    Ok(Answer::of(vec![sound()]))
}

/// Return the contents of a resource.
#[derive(Deserialize, JsonSchema)]
struct Embedded {}

async fn embedded(_: Arc<Samples>, Embedded {}: Embedded, _: Cx) -> Result<Answer> {
    let words = "This is an embedded resource content.";
    Ok(Answer::of(vec![resource(
        "test://embedded-resource",
        "text/plain",
        words,
    )]))
}

/// Return text, a picture and the contents of a resource.
#[derive(Deserialize, JsonSchema)]
struct Mixed {}

async fn mixed(_: Arc<Samples>, Mixed {}: Mixed, _: Cx) -> Result<Answer> {
    Ok(Answer::of(vec![
        Content::text("Multiple content types test:"),
        picture(),
        resource(
            "test://mixed-content-resource",
            "application/json",
            r#"{"test":"data","value":123}"#,
        ),
    ]))
}

/// Fail always with a tool error: a result with `isError`.
#[derive(Deserialize, JsonSchema)]
struct Error {}

async fn error(_: Arc<Samples>, Error {}: Error, _: Cx) -> Result<Answer> {
    Err(ToolError::new("This tool intentionally returns an error for testing").into())
}

fn resource(uri: &str, mime_type: &str, text: &str) -> Content {
    Content::Resource {
        resource: ResourceContents {
            uri: uri.to_owned(),
            mime_type: Some(mime_type.to_owned()),
            text: Some(text.to_owned()),
            ..ResourceContents::default()
        },
        annotations: None,
    }
}
