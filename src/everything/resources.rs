//! Resources: text, bytes, one to be watched, and a family of them.

use tokio::sync::watch;

use super::media::PNG;
use crate::protocol::{Resource, ResourceContents, ResourceTemplate, RpcError, Template};
use crate::registry::{BoxFuture, Completion, Reference, ResourceSource};

const FAMILY: &str = "test://template/{id}/data";

/// Members of the family that completion offers; every other can be read just as well.
const IDS: [&str; 3] = ["1", "12", "123"];

/// URI, name, description, type.
type Row = (&'static str, &'static str, &'static str, &'static str);

#[rustfmt::skip]
const ROWS: [Row; 3] = [
    ("test://static-text",      "static-text",      "A text that never changes",       "text/plain"),
    ("test://static-binary",    "static-binary",    "A picture that never changes",    "image/png"),
    ("test://watched-resource", "watched-resource", "A text that can be subscribed to", "text/plain"),
];

/// The fixtures' resources. They never change, so the bell never rings.
pub struct Fixtures {
    bell: watch::Sender<u64>,
    family: Template,
}

impl Fixtures {
    /// All of them.
    pub fn new() -> Self {
        Self {
            bell: watch::Sender::new(0),
            family: Template::parse(FAMILY),
        }
    }

    fn find(&self, uri: &str) -> Option<ResourceContents> {
        let (mime_type, text, blob) = match uri {
            "test://static-text" => {
                let words = "This is the content of the static text resource.";
                ("text/plain", Some(words.to_owned()), None)
            }
            "test://watched-resource" => (
                "text/plain",
                Some("Watched resource content".to_owned()),
                None,
            ),
            "test://static-binary" => ("image/png", None, Some(PNG.to_owned())),
            _ => ("application/json", Some(self.member(uri)?), None),
        };
        Some(ResourceContents {
            uri: uri.to_owned(),
            mime_type: Some(mime_type.to_owned()),
            text,
            blob,
            meta: None,
        })
    }

    fn member(&self, uri: &str) -> Option<String> {
        let variables = self.family.matches(uri)?;
        let (_, id) = variables.first()?;
        let data = format!("Data for ID: {id}");
        Some(serde_json::json!({ "id": id, "templateTest": true, "data": data }).to_string())
    }
}

impl ResourceSource for Fixtures {
    fn resources(&self) -> Vec<Resource> {
        let resource = |(uri, name, description, mime_type): &Row| Resource {
            uri: (*uri).to_owned(),
            name: (*name).to_owned(),
            description: Some((*description).to_owned()),
            mime_type: Some((*mime_type).to_owned()),
            ..Resource::default()
        };
        ROWS.iter().map(resource).collect()
    }

    fn templates(&self) -> Vec<ResourceTemplate> {
        vec![ResourceTemplate {
            uri_template: FAMILY.to_owned(),
            name: "template".to_owned(),
            description: Some("Data of any id".to_owned()),
            mime_type: Some("application/json".to_owned()),
            ..ResourceTemplate::default()
        }]
    }

    fn read(&self, uri: &str) -> BoxFuture<Result<Option<Vec<ResourceContents>>, RpcError>> {
        let found = self.find(uri).map(|contents| vec![contents]);
        Box::pin(std::future::ready(Ok(found)))
    }

    fn can_watch(&self, uri: &str) -> bool {
        self.find(uri).is_some()
    }

    fn bell(&self) -> watch::Receiver<u64> {
        self.bell.subscribe()
    }

    fn touched(&self, _: &str, _: u64) -> Option<u64> {
        None
    }
}

/// Values for the variable of the family.
pub fn complete(asked: &Completion) -> Vec<String> {
    if asked.reference != Reference::Template(FAMILY.to_owned()) {
        return Vec::new();
    }
    let fits = |id: &&str| id.starts_with(&asked.typed);
    IDS.into_iter().filter(fits).map(str::to_owned).collect()
}
