//! Where resources come from: a source lists, reads and watches its own URIs, for who looks.

use std::future::Future;
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::watch;

use crate::config::Reach;
use crate::protocol::{ReadDocument, Resource, ResourceContents, ResourceTemplate, RpcError};

/// A future that can be kept in a table.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Who looks at resources; what is not within its reach is not there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Viewer {
    /// The agent's id.
    pub agent: Arc<str>,
    /// What of the box there is for it.
    pub reach: Reach,
}

/// A source of resources.
pub trait ResourceSource: Send + Sync {
    /// What `resources/list` shows of it.
    fn resources(&self, viewer: &Viewer) -> Vec<Resource>;

    /// What `resources/templates/list` shows of it.
    fn templates(&self, viewer: &Viewer) -> Vec<ResourceTemplate>;

    /// Reads one; `None` when there is no such resource here.
    fn read(
        &self,
        viewer: &Viewer,
        uri: &str,
    ) -> BoxFuture<Result<Option<Vec<ResourceContents>>, RpcError>>;

    /// Reads one that is a JSON document, written for the answer; `None` where `read` is to be asked, as for what is
    /// no document or is not there.
    fn document(&self, _viewer: &Viewer, _uri: &str) -> Option<ReadDocument> {
        None
    }

    /// Whether a URI may be subscribed to: one that can exist, though it need not now.
    fn can_watch(&self, viewer: &Viewer, uri: &str) -> bool;

    /// Rings with the newest revision whenever something may have changed, once `touched` knows of it.
    fn bell(&self) -> watch::Receiver<u64>;

    /// The newest revision there is for who looks.
    fn newest(&self, _viewer: &Viewer) -> u64 {
        *self.bell().borrow()
    }

    /// Whether the changes of a resource are no revisions, but counted apart: `touched` then goes by that count.
    /// It is not remembered across restarts.
    fn is_apart(&self, _uri: &str) -> bool {
        false
    }

    /// How far the count apart has come.
    fn newest_apart(&self) -> u64 {
        0
    }

    /// Rings whenever the count apart may have moved; nothing where there is none.
    fn bell_apart(&self) -> Option<watch::Receiver<u64>> {
        None
    }

    /// The newest revision after `after` that changed what this URI reads, if one did.
    fn touched(&self, viewer: &Viewer, uri: &str, after: u64) -> Option<u64>;

    /// How the revisions after the first of these, up to the last, changed what this URI reads; `None` where
    /// that is not known or too long to be told.
    fn patches(
        &self,
        _viewer: &Viewer,
        _uri: &str,
        _revisions: RangeInclusive<u64>,
    ) -> Option<Value> {
        None
    }
}
