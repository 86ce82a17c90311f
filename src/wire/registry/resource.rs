//! Sources of resources: a source lists, reads and watches its own URIs, for a viewer.

use std::future::Future;
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::watch;

use crate::protocol::{ReadDocument, Resource, ResourceContents, ResourceTemplate, RpcError};
use gatewren_base::config::Reach;

/// A boxed future.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The agent that accesses resources; those outside of its reach do not exist for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Viewer {
    /// The agent's id.
    pub agent: Arc<str>,
    /// The parts of the host that it can see.
    pub reach: Reach,
}

/// A source of resources.
pub trait ResourceSource: Send + Sync {
    /// The resources in `resources/list`.
    fn resources(&self, viewer: &Viewer) -> Vec<Resource>;

    /// The templates in `resources/templates/list`.
    fn templates(&self, viewer: &Viewer) -> Vec<ResourceTemplate>;

    /// Reads a resource; `None` if this source has no such resource.
    fn read(
        &self,
        viewer: &Viewer,
        uri: &str,
    ) -> BoxFuture<Result<Option<Vec<ResourceContents>>, RpcError>>;

    /// Reads a JSON document that is already serialized for the answer. `None` if `read` must be called instead:
    /// the resource is no such document, or does not exist.
    fn document(&self, _viewer: &Viewer, _uri: &str) -> Option<ReadDocument> {
        None
    }

    /// Whether a viewer may subscribe to a URI: the resource need not exist yet.
    fn can_watch(&self, viewer: &Viewer, uri: &str) -> bool;

    /// Receives the newest revision whenever something may have changed, after `newest_change` can see it.
    fn watch_revision(&self) -> watch::Receiver<u64>;

    /// The newest revision that the viewer can see.
    fn newest(&self, _viewer: &Viewer) -> u64 {
        *self.watch_revision().borrow()
    }

    /// Whether changes of a resource are counted separately and are not revisions: `newest_change` then uses that count.
    /// The count is not stored across restarts.
    fn has_separate_count(&self, _uri: &str) -> bool {
        false
    }

    /// The current value of the separate count.
    fn separate_count(&self) -> u64 {
        0
    }

    /// Notified whenever the separate count may have changed; `None` if there is none.
    fn watch_separate_count(&self) -> Option<watch::Receiver<u64>> {
        None
    }

    /// The newest revision after `after` that changed the content at this URI, if any.
    fn newest_change(&self, viewer: &Viewer, uri: &str, after: u64) -> Option<u64>;

    /// The patches that the revisions after the first of these, up to the last, made to the content at this URI.
    /// `None` if they are unknown or too long to be sent.
    fn patches(
        &self,
        _viewer: &Viewer,
        _uri: &str,
        _revisions: RangeInclusive<u64>,
    ) -> Option<Value> {
        None
    }
}
