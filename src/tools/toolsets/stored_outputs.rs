//! `gatewren:///outputs/{id}`: full outputs of an agent's own commands that were too long for the answer.

use gatewren_host::backends::{CapturedOutput, StoredOutputs};
use gatewren_wire::protocol::{ResourceContents, ResourceTemplate, RpcError};
use gatewren_wire::registry::{AddedResources, BoxFuture, Viewer, is_text};

/// The URI prefix of these resources.
pub const OUTPUTS: &str = "gatewren:///outputs/";

/// The caller's own outputs.
pub struct OutputResources(pub StoredOutputs);

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

impl AddedResources for OutputResources {
    const PREFIX: &'static str = OUTPUTS;

    fn templates(&self, _: &Viewer) -> Vec<ResourceTemplate> {
        vec![ResourceTemplate {
            uri_template: format!("{OUTPUTS}{{id}}"),
            name: "output".to_owned(),
            description: Some(
                "Output of a command of this agent, linked from its result".to_owned(),
            ),
            ..ResourceTemplate::default()
        }]
    }

    fn read(
        &self,
        viewer: &Viewer,
        uri: &str,
    ) -> BoxFuture<Result<Option<Vec<ResourceContents>>, RpcError>> {
        let id = uri.strip_prefix(OUTPUTS).unwrap_or_default();
        let found = self.0.find(&viewer.agent, id);
        let read = found.map(|output| vec![contents(uri, &output)]);
        Box::pin(std::future::ready(Ok(read)))
    }
}
