//! `gatewren:///outputs/{id}`: full outputs of an agent's own commands that were too long for the answer.

use std::ops::RangeInclusive;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::watch;

use gatewren_host::backends::{CapturedOutput, StoredOutputs};
use gatewren_wire::protocol::{
    ReadDocument, Resource, ResourceContents, ResourceTemplate, RpcError,
};
use gatewren_wire::registry::{BoxFuture, ResourceSource, Viewer, is_text};

/// The URI prefix of these resources.
pub const OUTPUTS: &str = "gatewren:///outputs/";

/// A resource source that adds the caller's own outputs.
pub struct OutputResources {
    inner: Arc<dyn ResourceSource>,
    outputs: StoredOutputs,
}

impl OutputResources {
    /// Combines resources with outputs.
    pub fn new(inner: Arc<dyn ResourceSource>, outputs: StoredOutputs) -> Self {
        Self { inner, outputs }
    }
}

/// Returns the output as text if it is text, else its bytes. A gap is marked in text, and ends the bytes.
fn contents(uri: &str, output: &CapturedOutput) -> ResourceContents {
    if is_text(&output.head) && is_text(&output.tail) {
        return ResourceContents {
            uri: uri.to_owned(),
            mime_type: Some("text/plain".to_owned()),
            text: Some(output.text_lossy()),
            ..ResourceContents::default()
        };
    }
    let mut bytes = output.head.clone();
    if !output.truncated() {
        bytes.extend_from_slice(&output.tail);
    }
    ResourceContents::of_bytes(uri, "application/octet-stream", &bytes)
}

impl ResourceSource for OutputResources {
    fn resources(&self, viewer: &Viewer) -> Vec<Resource> {
        self.inner.resources(viewer)
    }

    fn templates(&self, viewer: &Viewer) -> Vec<ResourceTemplate> {
        let mut templates = self.inner.templates(viewer);
        templates.push(ResourceTemplate {
            uri_template: format!("{OUTPUTS}{{id}}"),
            name: "output".to_owned(),
            description: Some(
                "Output of a command of this agent, linked from its result".to_owned(),
            ),
            ..ResourceTemplate::default()
        });
        templates
    }

    fn read(
        &self,
        viewer: &Viewer,
        uri: &str,
    ) -> BoxFuture<Result<Option<Vec<ResourceContents>>, RpcError>> {
        let Some(id) = uri.strip_prefix(OUTPUTS) else {
            return self.inner.read(viewer, uri);
        };
        let found = self.outputs.find(&viewer.agent, id);
        let read = found.map(|output| vec![contents(uri, &output)]);
        Box::pin(std::future::ready(Ok(read)))
    }

    fn document(&self, viewer: &Viewer, uri: &str) -> Option<ReadDocument> {
        self.inner.document(viewer, uri)
    }

    fn can_watch(&self, viewer: &Viewer, uri: &str) -> bool {
        !uri.starts_with(OUTPUTS) && self.inner.can_watch(viewer, uri)
    }

    fn watch_revision(&self) -> watch::Receiver<u64> {
        self.inner.watch_revision()
    }

    fn newest(&self, viewer: &Viewer) -> u64 {
        self.inner.newest(viewer)
    }

    fn has_separate_count(&self, uri: &str) -> bool {
        self.inner.has_separate_count(uri)
    }

    fn separate_count(&self) -> u64 {
        self.inner.separate_count()
    }

    fn watch_separate_count(&self) -> Option<watch::Receiver<u64>> {
        self.inner.watch_separate_count()
    }

    fn newest_change(&self, viewer: &Viewer, uri: &str, after: u64) -> Option<u64> {
        self.inner.newest_change(viewer, uri, after)
    }

    fn patches(&self, viewer: &Viewer, uri: &str, revisions: RangeInclusive<u64>) -> Option<Value> {
        self.inner.patches(viewer, uri, revisions)
    }
}
