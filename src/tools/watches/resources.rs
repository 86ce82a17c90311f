//! `gatewren:///watches`: an agent's own watches as a resource.

use super::view::OwnWatches;
use gatewren_store::vault::Vault;
use gatewren_wire::protocol::{Resource, ResourceContents, RpcError, code};
use gatewren_wire::registry::{AddedResources, BoxFuture, Viewer};

/// The URI of the resource.
const WATCHES: &str = "gatewren:///watches";

/// The viewer's own watches, as `watch_list` shows them.
pub struct WatchResources(pub Vault);

impl AddedResources for WatchResources {
    const PREFIX: &'static str = WATCHES;

    /// Listed only for an agent that has watches.
    fn resources(&self, viewer: &Viewer) -> Vec<Resource> {
        let own = OwnWatches::of(&self.0, &viewer.agent);
        let has_some = own.is_ok_and(|own| !own.is_empty());
        let one = has_some.then(|| Resource {
            uri: WATCHES.to_owned(),
            name: "watches".to_owned(),
            description: Some("This agent's watches, with what the last checks found".to_owned()),
            mime_type: Some("application/json".to_owned()),
            ..Resource::default()
        });
        one.into_iter().collect()
    }

    fn read(
        &self,
        viewer: &Viewer,
        uri: &str,
    ) -> BoxFuture<Result<Option<Vec<ResourceContents>>, RpcError>> {
        let read = (uri == WATCHES).then(|| OwnWatches::of(&self.0, &viewer.agent));
        let read = read.transpose().map_err(|cause| {
            tracing::error!(%cause, "cannot read the watches");
            RpcError::new(code::INTERNAL, "the watches cannot be read at the moment")
        });
        let read = read.map(|own| own.map(|own| vec![ResourceContents::of_json(uri, &own)]));
        Box::pin(std::future::ready(read))
    }
}
