//! Adds the resources below one URI prefix to another source of resources.

use std::ops::RangeInclusive;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::watch;

use super::resource::{BoxFuture, ResourceSource, Viewer};
use crate::protocol::{ReadDocument, Resource, ResourceContents, ResourceTemplate, RpcError};

/// The resources below one URI prefix.
pub trait AddedResources: Send + Sync {
    /// The beginning of their URIs. The other source has no URI that begins with it.
    const PREFIX: &'static str;

    /// Whether subscribers learn of their changes, by a count of their own. Only one of the sources that are combined
    /// may have a count.
    const IS_COUNTED: bool = false;

    /// Those in `resources/list`.
    fn resources(&self, _viewer: &Viewer) -> Vec<Resource> {
        Vec::new()
    }

    /// Their templates in `resources/templates/list`.
    fn templates(&self, _viewer: &Viewer) -> Vec<ResourceTemplate> {
        Vec::new()
    }

    /// Reads a resource below the prefix; `None` if there is none.
    fn read(
        &self,
        viewer: &Viewer,
        uri: &str,
    ) -> BoxFuture<Result<Option<Vec<ResourceContents>>, RpcError>>;

    /// Whether a viewer may subscribe to a URI below the prefix: the resource need not exist yet.
    fn can_watch(&self, _viewer: &Viewer, _uri: &str) -> bool {
        false
    }

    /// The current value of their count.
    fn count(&self) -> u64 {
        0
    }

    /// Notified whenever their count may have changed.
    fn watch_count(&self) -> Option<watch::Receiver<u64>> {
        None
    }

    /// The newest count after `after` that changed the content at a URI below the prefix, if any.
    fn newest_change(&self, _viewer: &Viewer, _uri: &str, _after: u64) -> Option<u64> {
        None
    }
}

/// A source of resources, and the ones that are added to it.
pub struct CombinedResources<A> {
    inner: Arc<dyn ResourceSource>,
    added: A,
}

impl<A: AddedResources> CombinedResources<A> {
    /// Adds resources to a source.
    pub fn new(inner: Arc<dyn ResourceSource>, added: A) -> Self {
        Self { inner, added }
    }
}

fn is_added<A: AddedResources>(uri: &str) -> bool {
    uri.starts_with(A::PREFIX)
}

impl<A: AddedResources> ResourceSource for CombinedResources<A> {
    fn resources(&self, viewer: &Viewer) -> Vec<Resource> {
        let mut resources = self.inner.resources(viewer);
        resources.extend(self.added.resources(viewer));
        resources
    }

    fn templates(&self, viewer: &Viewer) -> Vec<ResourceTemplate> {
        let mut templates = self.inner.templates(viewer);
        templates.extend(self.added.templates(viewer));
        templates
    }

    fn read(
        &self,
        viewer: &Viewer,
        uri: &str,
    ) -> BoxFuture<Result<Option<Vec<ResourceContents>>, RpcError>> {
        if is_added::<A>(uri) {
            return self.added.read(viewer, uri);
        }
        self.inner.read(viewer, uri)
    }

    fn document(&self, viewer: &Viewer, uri: &str) -> Option<ReadDocument> {
        self.inner.document(viewer, uri)
    }

    fn can_watch(&self, viewer: &Viewer, uri: &str) -> bool {
        if is_added::<A>(uri) {
            return self.added.can_watch(viewer, uri);
        }
        self.inner.can_watch(viewer, uri)
    }

    fn watch_revision(&self) -> watch::Receiver<u64> {
        self.inner.watch_revision()
    }

    fn newest(&self, viewer: &Viewer) -> u64 {
        self.inner.newest(viewer)
    }

    fn has_separate_count(&self, uri: &str) -> bool {
        if is_added::<A>(uri) {
            return A::IS_COUNTED;
        }
        self.inner.has_separate_count(uri)
    }

    fn separate_count(&self) -> u64 {
        if A::IS_COUNTED {
            return self.added.count();
        }
        self.inner.separate_count()
    }

    fn watch_separate_count(&self) -> Option<watch::Receiver<u64>> {
        if A::IS_COUNTED {
            return self.added.watch_count();
        }
        self.inner.watch_separate_count()
    }

    fn newest_change(&self, viewer: &Viewer, uri: &str, after: u64) -> Option<u64> {
        if is_added::<A>(uri) {
            return self.added.newest_change(viewer, uri, after);
        }
        self.inner.newest_change(viewer, uri, after)
    }

    fn patches(&self, viewer: &Viewer, uri: &str, revisions: RangeInclusive<u64>) -> Option<Value> {
        let is_inner = !is_added::<A>(uri);
        is_inner.then(|| self.inner.patches(viewer, uri, revisions))?
    }
}
