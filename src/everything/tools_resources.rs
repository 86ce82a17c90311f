//! Tools that return resources: links to them, their contents, and one created from bytes.

use std::io::Write as _;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::{Compression, write::GzEncoder};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::broadcast::Sender;

use super::{
    data_url,
    dynamic::Family,
    kept,
    resources::{Fixtures, WATCHED},
};
use crate::protocol::{Content, Resource};
use crate::registry::{
    Answer, Cx, ListChange, ResourceSource as _, Result, Risk, ToolError, Toolset,
};

const GZIP: &str = "application/gzip";

/// The maximum number of links in one result.
const MAX_LINKS: u64 = 10;

/// The resources, and the channel for changes of their list.
pub struct Shelf {
    fixtures: Arc<Fixtures>,
    lists: Sender<ListChange>,
}

/// The toolset, as a table.
#[rustfmt::skip]
pub fn tools(fixtures: Arc<Fixtures>, lists: Sender<ListChange>) -> Toolset<Shelf> {
    Toolset::over(Arc::new(Shelf { fixtures, lists }))
        .answering("get-resource-links", Risk::Read, links).titled("Resource links")
        .answering("get-resource-reference", Risk::Read, reference).titled("Resource reference")
        .answering("gzip-file-as-resource", Risk::Write, gzip).titled("Gzip file as resource")
        .answering("test_trigger_resource_update", Risk::Write, update)
}

/// Return links to resources, alternately with text and with bytes.
#[derive(Deserialize, JsonSchema)]
struct Links {
    /// The number of links, 1 to 10.
    #[serde(default = "three")]
    #[schemars(range(min = 1, max = 10))]
    count: u64,
}

fn three() -> u64 {
    3
}

async fn links(_: Arc<Shelf>, Links { count }: Links, _: Cx) -> Result<Answer> {
    if !(1..=MAX_LINKS).contains(&count) {
        return Err(ToolError::new(format!("count is 1 to {MAX_LINKS}, not {count}")).into());
    }
    let mut content = vec![Content::text(format!(
        "Here are {count} links to resources:"
    ))];
    content.extend((1..=count).map(|id| {
        let family = if id % 2 == 0 {
            Family::Text
        } else {
            Family::Blob
        };
        Content::ResourceLink {
            uri: family.uri(id),
            name: format!("{} Resource {id}", family.name()),
            description: Some(format!("Resource {id}, made when it is read")),
            mime_type: Some(family.mime_type().to_owned()),
        }
    }));
    Ok(Answer::of(content))
}

/// Return the contents of a resource between two texts; the second one has its URI.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Referred {
    /// Text or bytes.
    #[serde(default)]
    resource_type: Family,
    /// The number of the resource, above zero.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    resource_id: u64,
}

fn one() -> u64 {
    1
}

async fn reference(_: Arc<Shelf>, asked: Referred, _: Cx) -> Result<Answer> {
    let Referred {
        resource_type,
        resource_id,
    } = asked;
    if resource_id == 0 {
        return Err(ToolError::new("resourceId is an integer above zero").into());
    }
    let resource = resource_type.member(resource_id);
    let place = format!("It can be read at {}", resource.uri);
    Ok(Answer::of(vec![
        Content::text(format!("Here is resource {resource_id}:")),
        Content::Resource {
            resource,
            annotations: None,
        },
        Content::text(place),
    ]))
}

/// Compress the bytes of a data: URL with gzip. The result is a resource, kept in memory until newer ones replace
/// it; every client of this server can read it.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Gzip {
    /// The name of the result: letters, digits, dots, hyphens and underscores.
    #[serde(default = "file_name")]
    name: String,
    /// A data: URL of at most 1 MiB. Nothing is fetched from the network.
    #[serde(default = "sample")]
    data: String,
    /// Whether to return a link to the result or its contents.
    #[serde(default)]
    output_type: Output,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum Output {
    #[default]
    ResourceLink,
    Resource,
}

fn file_name() -> String {
    "README.md.gz".to_owned()
}

fn sample() -> String {
    "data:text/plain,A%20file%20to%20be%20compressed".to_owned()
}

async fn gzip(shelf: Arc<Shelf>, asked: Gzip, _: Cx) -> Result<Answer> {
    if !kept::is_name(&asked.name) {
        let words = "name is 1 to 100 letters, digits, dots, hyphens and underscores";
        return Err(ToolError::new(words).into());
    }
    let bytes = data_url::bytes(&asked.data).map_err(|cause| ToolError::new(cause.to_string()))?;
    let blob = STANDARD.encode(compressed(&bytes)?);
    let resource = shelf.fixtures.keep(&asked.name, GZIP, blob.clone());
    // An error means that there are no subscribers.
    let _ = shelf.lists.send(ListChange::Resources);
    Ok(Answer::of(vec![match asked.output_type {
        Output::ResourceLink => link(resource),
        Output::Resource => Content::Resource {
            resource: kept::contents(&resource, blob),
            annotations: None,
        },
    }]))
}

fn compressed(bytes: &[u8]) -> std::result::Result<Vec<u8>, ToolError> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.map_err(|cause| ToolError::new(format!("the bytes could not be compressed: {cause}")))
}

fn link(resource: Resource) -> Content {
    Content::ResourceLink {
        uri: resource.uri,
        name: resource.name,
        description: resource.description,
        mime_type: resource.mime_type,
    }
}

/// Announce to all subscribers of a resource that it has changed, without changing it.
#[derive(Deserialize, JsonSchema)]
struct Update {
    /// The resource.
    #[serde(default = "watched")]
    uri: String,
}

fn watched() -> String {
    WATCHED.to_owned()
}

async fn update(shelf: Arc<Shelf>, Update { uri }: Update, cx: Cx) -> Result<Answer> {
    if !shelf.fixtures.can_watch(&cx.caller().viewer(), &uri) {
        return Err(ToolError::new(format!("there is no resource {uri}")).into());
    }
    shelf.fixtures.touch(&uri);
    Ok(Answer::text(format!("{uri} is said to have changed.")))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn what_is_compressed_comes_back() {
        let packed = compressed(b"again and again and again").unwrap();
        let mut unpacked = String::new();
        let mut decoder = flate2::read::GzDecoder::new(packed.as_slice());
        decoder.read_to_string(&mut unpacked).unwrap();
        assert_eq!(unpacked, "again and again and again");
    }
}
