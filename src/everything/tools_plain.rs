//! Tools with results that depend only on their arguments: text, sums, data, annotations, a picture.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{about::ABOUT, media};
use crate::protocol::{Annotations, Content, Role};
use crate::registry::{Answer, Cx, Result, Risk, Toolset};

/// These tools have no state.
pub struct Plain;

/// The toolset, as a table.
#[rustfmt::skip]
pub fn tools() -> Toolset<Plain> {
    Toolset::over(Arc::new(Plain))
        .answering("about", Risk::Read, about).titled("About these fixtures")
        .answering("echo", Risk::Read, echo).titled("Echo")
        .answering("get-sum", Risk::Read, sum).titled("Sum")
        .answering("get-structured-content", Risk::Read, weather).titled("Structured content").returning::<Weather>()
        .answering("get-annotated-message", Risk::Read, annotated).titled("Annotated message")
        .answering("get-tiny-image", Risk::Read, tiny_image).titled("Tiny image")
        .answering("get-env", Risk::Read, environment).titled("Environment")
}

/// Describe this server. Takes no arguments and changes nothing, so every client may call it.
#[derive(Deserialize, JsonSchema)]
struct About {}

async fn about(_: Arc<Plain>, About {}: About, _: Cx) -> Result<Answer> {
    Ok(Answer::text(ABOUT))
}

/// Return the given message.
#[derive(Deserialize, JsonSchema)]
struct Echo {
    /// The message to return.
    message: String,
}

async fn echo(_: Arc<Plain>, asked: Echo, _: Cx) -> Result<Answer> {
    Ok(Answer::text(format!("Echo: {}", asked.message)))
}

/// Adds two numbers.
#[derive(Deserialize, JsonSchema)]
struct Sum {
    /// The first number.
    a: f64,
    /// The second number.
    b: f64,
}

async fn sum(_: Arc<Plain>, Sum { a, b }: Sum, _: Cx) -> Result<Answer> {
    Ok(Answer::text(format!(
        "The sum of {a} and {b} is {}.",
        a + b
    )))
}

/// Return the weather of a city as data, which the tool's outputSchema describes, and as text.
#[derive(Deserialize, JsonSchema)]
struct Place {
    /// The city.
    location: City,
}

#[derive(Deserialize, JsonSchema)]
enum City {
    #[serde(rename = "New York")]
    NewYork,
    Chicago,
    #[serde(rename = "Los Angeles")]
    LosAngeles,
}

#[derive(Serialize, JsonSchema)]
struct Weather {
    /// Degrees Celsius.
    temperature: f64,
    /// The conditions in words.
    conditions: &'static str,
    /// Percent.
    humidity: f64,
}

async fn weather(_: Arc<Plain>, asked: Place, _: Cx) -> Result<Answer> {
    let (temperature, conditions, humidity) = match asked.location {
        City::NewYork => (33.0, "Cloudy", 82.0),
        City::Chicago => (36.0, "Light rain", 82.0),
        City::LosAngeles => (23.0, "Sunny", 48.0),
    };
    Ok(Answer::data(&Weather {
        temperature,
        conditions,
        humidity,
    })?)
}

/// Return a message with annotations for its audience and its priority.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Annotated {
    /// The kind of message, which decides its annotations.
    message_type: MessageType,
    /// Whether a picture follows, with its own annotations.
    #[serde(default)]
    include_image: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum MessageType {
    Error,
    Success,
    Debug,
}

async fn annotated(_: Arc<Plain>, asked: Annotated, _: Cx) -> Result<Answer> {
    let (text, priority, audience) = match asked.message_type {
        MessageType::Error => (
            "Error: the operation failed",
            1.0,
            vec![Role::User, Role::Assistant],
        ),
        MessageType::Success => ("The operation succeeded", 0.7, vec![Role::User]),
        MessageType::Debug => (
            "Debug: cache hit ratio 0.95, latency 150 ms",
            0.3,
            vec![Role::Assistant],
        ),
    };
    let mut content = vec![Content::Text {
        text: text.to_owned(),
        annotations: Some(hints(priority, audience)),
    }];
    if asked.include_image {
        content.push(media::annotated_picture(hints(0.5, vec![Role::User])));
    }
    Ok(Answer::of(content))
}

fn hints(priority: f64, audience: Vec<Role>) -> Annotations {
    Annotations {
        audience,
        priority: Some(priority),
        last_modified: None,
    }
}

/// Return a picture between two texts.
#[derive(Deserialize, JsonSchema)]
struct TinyImage {}

async fn tiny_image(_: Arc<Plain>, TinyImage {}: TinyImage, _: Cx) -> Result<Answer> {
    Ok(Answer::of(vec![
        Content::text("Here is the picture:"),
        media::picture(),
        Content::text("The picture above is four by four pixels of brown."),
    ]))
}

/// Return the server's name, version and platform as JSON. Its environment variables are not returned: they may
/// contain secrets.
#[derive(Deserialize, JsonSchema)]
struct Environment {}

async fn environment(_: Arc<Plain>, Environment {}: Environment, _: Cx) -> Result<Answer> {
    let told = json!({
        "server": env!("CARGO_PKG_NAME"),
        "version": env!("CARGO_PKG_VERSION"),
        "os": std::env::consts::OS,
        "architecture": std::env::consts::ARCH,
    });
    Ok(Answer::text(format!("{told:#}")))
}
