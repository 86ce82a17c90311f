//! Resources: text, bytes, one to subscribe to, families of resources, and those that tools have created.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::{documents, dynamic, kept::Kept, media::PNG};
use crate::protocol::{Resource, ResourceContents, ResourceTemplate, RpcError, Template};
use crate::registry::{BoxFuture, Completion, Reference, ResourceSource, Viewer};

/// The default resource of the tool that triggers changes.
pub const WATCHED: &str = "test://watched-resource";

const FAMILY: &str = "test://template/{id}/data";

/// Members of the family that completion offers; any other can be read as well.
const IDS: [&str; 3] = ["1", "12", "123"];

/// The maximum number of URIs with a recorded change; beyond it, all are reported as changed.
const MAX_CHANGED: usize = 64;

/// URI, name, description, type.
type Row = (&'static str, &'static str, &'static str, &'static str);

#[rustfmt::skip]
const ROWS: [Row; 3] = [
    ("test://static-text",   "static-text",      "A text that never changes",       "text/plain"),
    ("test://static-binary", "static-binary",    "A picture that never changes",    "image/png"),
    (WATCHED,                "watched-resource", "A text that can be subscribed to", "text/plain"),
];

/// The fixtures' resources.
pub struct Fixtures {
    /// Sends the number of changes so far.
    bell: watch::Sender<u64>,
    changes: Mutex<Changes>,
    kept: Mutex<Kept>,
    family: Template,
}

/// The count of the last change, for all resources and for single ones.
#[derive(Default)]
struct Changes {
    all: u64,
    single: BTreeMap<String, u64>,
}

impl Fixtures {
    /// Creates all of them.
    pub fn new() -> Self {
        Self {
            bell: watch::Sender::new(0),
            changes: Mutex::default(),
            kept: Mutex::default(),
            family: Template::parse(FAMILY),
        }
    }

    /// Reports one resource as changed.
    pub fn touch(&self, uri: &str) {
        self.ring(|changes, count| {
            changes.single.insert(uri.to_owned(), count);
            if changes.single.len() > MAX_CHANGED {
                changes.single.clear();
                changes.all = count;
            }
        });
    }

    /// Reports every resource as changed.
    pub fn touch_all(&self) {
        self.ring(|changes, count| changes.all = count);
    }

    /// Stores bytes, as base64, as a resource with this name.
    pub fn keep(&self, name: &str, mime_type: &str, blob: String) -> Resource {
        let resource = lock(&self.kept).keep(name, mime_type, blob);
        self.touch(&resource.uri);
        resource
    }

    fn ring(&self, change: impl FnOnce(&mut Changes, u64)) {
        self.bell.send_modify(|count| {
            *count += 1;
            change(&mut lock(&self.changes), *count);
        });
    }

    fn find(&self, uri: &str) -> Option<ResourceContents> {
        let made = || lock(&self.kept).find(uri);
        self.fixed(uri)
            .or_else(|| documents::find(uri))
            .or_else(|| dynamic::find(uri))
            .or_else(made)
    }

    fn fixed(&self, uri: &str) -> Option<ResourceContents> {
        let (mime_type, text, blob) = match uri {
            "test://static-text" => {
                let words = "This is the content of the static text resource.";
                ("text/plain", Some(words.to_owned()), None)
            }
            WATCHED => {
                let words = "This is the content of the watched resource.";
                ("text/plain", Some(words.to_owned()), None)
            }
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
    fn resources(&self, _: &Viewer) -> Vec<Resource> {
        let resource = |(uri, name, description, mime_type): &Row| Resource {
            uri: (*uri).to_owned(),
            name: (*name).to_owned(),
            description: Some((*description).to_owned()),
            mime_type: Some((*mime_type).to_owned()),
            ..Resource::default()
        };
        let mut all: Vec<Resource> = ROWS.iter().map(resource).collect();
        all.extend(documents::list());
        all.extend(lock(&self.kept).list());
        all
    }

    fn templates(&self, _: &Viewer) -> Vec<ResourceTemplate> {
        let mut all = vec![ResourceTemplate {
            uri_template: FAMILY.to_owned(),
            name: "template".to_owned(),
            description: Some("Data of any id".to_owned()),
            mime_type: Some("application/json".to_owned()),
            ..ResourceTemplate::default()
        }];
        all.extend(dynamic::templates());
        all
    }

    fn read(
        &self,
        _: &Viewer,
        uri: &str,
    ) -> BoxFuture<Result<Option<Vec<ResourceContents>>, RpcError>> {
        let found = self.find(uri).map(|contents| vec![contents]);
        Box::pin(std::future::ready(Ok(found)))
    }

    fn can_watch(&self, _: &Viewer, uri: &str) -> bool {
        self.find(uri).is_some()
    }

    fn bell(&self) -> watch::Receiver<u64> {
        self.bell.subscribe()
    }

    fn touched(&self, _: &Viewer, uri: &str, after: u64) -> Option<u64> {
        let changes = lock(&self.changes);
        let single = changes.single.get(uri).copied().unwrap_or_default();
        Some(changes.all.max(single)).filter(|count| *count > after)
    }
}

/// Completions for the variables of the families.
pub fn complete(asked: &Completion) -> Vec<String> {
    let Reference::Template(template) = &asked.reference else {
        return Vec::new();
    };
    if template == FAMILY {
        let fits = |id: &&str| id.starts_with(&asked.typed);
        return IDS.into_iter().filter(fits).map(str::to_owned).collect();
    }
    let dynamic = dynamic::Family::ALL
        .iter()
        .any(|family| *template == family.template());
    let is_id = dynamic && asked.argument == "resourceId" && dynamic::id(&asked.typed).is_some();
    is_id.then(|| asked.typed.clone()).into_iter().collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_changed_is_told_to_those_behind_it() {
        let (fixtures, viewer) = (Fixtures::new(), &Viewer::default());
        assert_eq!(fixtures.touched(viewer, WATCHED, 0), None);
        fixtures.touch(WATCHED);
        assert_eq!(fixtures.touched(viewer, WATCHED, 0), Some(1));
        assert_eq!(fixtures.touched(viewer, WATCHED, 1), None);
        assert_eq!(fixtures.touched(viewer, "test://static-text", 0), None);
        fixtures.touch_all();
        assert_eq!(fixtures.touched(viewer, "test://static-text", 0), Some(2));
        for n in 0..=MAX_CHANGED {
            fixtures.touch(&format!("test://template/{n}/data"));
        }
        assert!(fixtures.touched(viewer, "test://static-text", 2).is_some());
    }

    #[test]
    fn everything_that_is_listed_can_be_read() {
        let fixtures = Fixtures::new();
        fixtures.keep("a.gz", "application/gzip", String::new());
        for listed in fixtures.resources(&Viewer::default()) {
            let read = fixtures.find(&listed.uri).unwrap();
            assert_eq!(read.mime_type, listed.mime_type, "{}", listed.uri);
        }
    }
}
