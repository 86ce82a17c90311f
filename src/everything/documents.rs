//! Documents about the fixtures, which are resources themselves.

use crate::protocol::{Resource, ResourceContents};

const BASE: &str = "demo://resource/static/document/";
const MIME_TYPE: &str = "text/markdown";

/// Name, subject, and text.
type Document = (&'static str, &'static str, &'static str);

#[rustfmt::skip]
const DOCUMENTS: [Document; 7] = [
    ("architecture.md", "Where the fixtures stand in the server",  include_str!("documents/architecture.md")),
    ("extension.md",    "How a fixture is added",                  include_str!("documents/extension.md")),
    ("features.md",     "What there is to test a client with",     include_str!("documents/features.md")),
    ("how-it-works.md", "What happens when a fixture is called",   include_str!("documents/how-it-works.md")),
    ("instructions.md", "What a model is told of this server",     include_str!("documents/instructions.md")),
    ("startup.md",      "How the server of fixtures is started",   include_str!("documents/startup.md")),
    ("structure.md",    "Which file holds which fixture",          include_str!("documents/structure.md")),
];

/// The list of documents.
pub fn list() -> Vec<Resource> {
    let resource = |(name, description, _): &Document| Resource {
        uri: format!("{BASE}{name}"),
        name: (*name).to_owned(),
        description: Some((*description).to_owned()),
        mime_type: Some(MIME_TYPE.to_owned()),
        ..Resource::default()
    };
    DOCUMENTS.iter().map(resource).collect()
}

/// Returns the document with this URI.
pub fn find(uri: &str) -> Option<ResourceContents> {
    let wanted = uri.strip_prefix(BASE)?;
    let (_, _, text) = DOCUMENTS.iter().find(|(name, ..)| *name == wanted)?;
    Some(ResourceContents {
        uri: uri.to_owned(),
        mime_type: Some(MIME_TYPE.to_owned()),
        text: Some((*text).to_owned()),
        ..ResourceContents::default()
    })
}
