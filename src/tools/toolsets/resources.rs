//! The state as resources: every pointer under `/public` can be read and subscribed to.

use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::sync::watch;

use super::text_cache::CachedText;
use gatewren_base::sys::lock;
use gatewren_store::state::{Pointer, RevisionsSince, StateView, StateViews};
use gatewren_wire::protocol::{
    ReadDocument, Resource, ResourceContents, ResourceTemplate, RpcError,
};
use gatewren_wire::registry::{BoxFuture, Dialect, ResourceSource, Viewer};

/// gatewren's URI scheme, and the one that `StartOS` clients use for the same paths.
const SCHEMES: [&str; 2] = ["gatewren://", "startos://"];

/// The URI path of the instructions for models; not part of the state.
const SYSTEM_PROMPT: &str = "/mcp/system-prompt";

/// The maximum number of revisions, and of bytes of their patches, in an update notification. Beyond these the
/// client reads the resource again, or calls `changes_since`.
const MAX_TOLD_REVISIONS: u64 = 256;
const MAX_TOLD_BYTES: usize = 8 << 10;

/// A resource source for the state document.
pub struct StateResources {
    views: StateViews,
    /// The text of `/mcp/system-prompt`.
    prompt: String,
    /// The scheme of listed URIs.
    scheme: &'static str,
    kept: CachedText,
    last_parsed: Mutex<Option<(Box<str>, Arc<Place>)>>,
}

/// The target of a URI.
enum Place {
    Prompt,
    Public(Pointer),
}

impl StateResources {
    /// Creates the resources of a state, listed in this dialect; `prompt` is the instructions for models.
    pub fn new(views: StateViews, mut prompt: String, dialect: Dialect) -> Self {
        let version = concat!("gatewren ", env!("CARGO_PKG_VERSION"), "\n\n");
        prompt.insert_str(0, version);
        let [ours, theirs] = SCHEMES;
        let scheme = match dialect {
            Dialect::Portable => ours,
            Dialect::StartOs => theirs,
        };
        Self {
            views,
            prompt,
            scheme,
            kept: CachedText::default(),
            last_parsed: Mutex::default(),
        }
    }

    /// Parses a URI, or returns the result of the last time.
    ///
    /// Fast path: after a change, each subscriber of a resource asks about the same one.
    fn parsed(&self, uri: &str) -> Option<Arc<Place>> {
        let mut last = lock(&self.last_parsed);
        if let Some((known, place)) = &*last
            && **known == *uri
        {
            return Some(place.clone());
        }
        let place = Arc::new(place(uri)?);
        *last = Some((uri.into(), place.clone()));
        Some(place)
    }

    fn view(&self, viewer: &Viewer) -> StateView {
        self.views.view_for(&viewer.agent, &viewer.reach)
    }
}

/// Parses a URI; no path outside `/public` is possible, except the instructions.
fn place(uri: &str) -> Option<Place> {
    let path = SCHEMES.iter().find_map(|scheme| uri.strip_prefix(scheme))?;
    if path == SYSTEM_PROMPT {
        return Some(Place::Prompt);
    }
    let pointer = Pointer::from_uri_path(path).ok()?;
    let public = pointer
        .tokens()
        .first()
        .is_some_and(|first| first == "public");
    public.then_some(Place::Public(pointer))
}

impl ResourceSource for StateResources {
    fn resources(&self, viewer: &Viewer) -> Vec<Resource> {
        let row = |path: &str, name: &str, description: &str, mime: &str| Resource {
            uri: format!("{}{path}", self.scheme),
            name: name.to_owned(),
            description: Some(description.to_owned()),
            mime_type: Some(mime.to_owned()),
            ..Resource::default()
        };
        let mut all = vec![
            row(
                SYSTEM_PROMPT,
                "system-prompt",
                "What this server is and how to work with it",
                "text/plain",
            ),
            row(
                "/public",
                "public",
                "The whole server: host and containers, with the revision",
                "application/json",
            ),
            row(
                "/public/packageData",
                "packageData",
                "The containers by name",
                "application/json",
            ),
        ];
        if viewer.reach.host() {
            all.push(row(
                "/public/serverInfo",
                "serverInfo",
                "The host: system, hardware, addresses",
                "application/json",
            ));
        }
        all
    }

    fn templates(&self, _: &Viewer) -> Vec<ResourceTemplate> {
        let row = |template: &str, name: &str, description: &str| ResourceTemplate {
            uri_template: format!("{}{template}", self.scheme),
            name: name.to_owned(),
            description: Some(description.to_owned()),
            mime_type: Some("application/json".to_owned()),
            ..ResourceTemplate::default()
        };
        vec![
            row(
                "/public/packageData/{container}",
                "container",
                "One container",
            ),
            row(
                "/public/{+pointer}",
                "state",
                "Any part of the state, as a path of keys",
            ),
        ]
    }

    fn read(
        &self,
        viewer: &Viewer,
        uri: &str,
    ) -> BoxFuture<Result<Option<Vec<ResourceContents>>, RpcError>> {
        let contents = match place(uri) {
            None => None,
            Some(Place::Prompt) => Some(ResourceContents {
                uri: uri.to_owned(),
                mime_type: Some("text/plain".to_owned()),
                text: Some(self.prompt.clone()),
                ..ResourceContents::default()
            }),
            Some(Place::Public(pointer)) => {
                self.view(viewer)
                    .at(&pointer, |value, revision| ResourceContents {
                        uri: uri.to_owned(),
                        mime_type: Some("application/json".to_owned()),
                        text: Some(value.to_string()),
                        meta: Some(json!({ "gatewren/revision": revision })),
                        ..ResourceContents::default()
                    })
            }
        };
        Box::pin(std::future::ready(Ok(
            contents.map(|contents| vec![contents])
        )))
    }

    fn document(&self, viewer: &Viewer, uri: &str) -> Option<ReadDocument> {
        let Place::Public(pointer) = place(uri)? else {
            return None;
        };
        self.view(viewer).seen_at(&pointer, |seen| ReadDocument {
            uri: uri.to_owned(),
            text: self.kept.of(&pointer, seen),
            revision: seen.revision,
        })
    }

    fn can_watch(&self, _: &Viewer, uri: &str) -> bool {
        place(uri).is_some()
    }

    fn watch_revision(&self) -> watch::Receiver<u64> {
        self.views.watch_revision()
    }

    fn newest(&self, viewer: &Viewer) -> u64 {
        self.view(viewer).revision()
    }

    fn newest_change(&self, viewer: &Viewer, uri: &str, after: u64) -> Option<u64> {
        match &*self.parsed(uri)? {
            Place::Prompt => None,
            Place::Public(pointer) => self.view(viewer).newest_change(pointer, after),
        }
    }

    fn patches(&self, viewer: &Viewer, uri: &str, revisions: RangeInclusive<u64>) -> Option<Value> {
        let (after, last) = revisions.into_inner();
        let Place::Public(pointer) = place(uri)? else {
            return None;
        };
        if last.saturating_sub(after) > MAX_TOLD_REVISIONS {
            return None;
        }
        let view = self.view(viewer);
        let found = view.changes(after, last, &pointer, usize::MAX);
        let Ok(RevisionsSince::Revisions {
            revisions, upto, ..
        }) = found
        else {
            return None;
        };
        let patches = serde_json::to_value(revisions).ok()?;
        let short = patches.to_string().len() <= MAX_TOLD_BYTES;
        (upto >= last && short).then_some(patches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_public_can_be_named() {
        for private in [
            "gatewren:///private/x",
            "gatewren:///",
            "gatewren:///publicX",
            "gatewren://host/public",
            "gatewren:///public/../private",
            "file:///public",
            "startos:///private",
            "",
        ] {
            let named = place(private);
            let inside = matches!(&named, Some(Place::Public(p)) if p.tokens()[0] == "public");
            assert!(named.is_none() || inside, "{private}");
        }
        assert!(matches!(
            place("startos:///public/serverInfo"),
            Some(Place::Public(_))
        ));
        assert!(matches!(
            place("gatewren:///mcp/system-prompt"),
            Some(Place::Prompt)
        ));
    }
}
