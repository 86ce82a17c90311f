//! `gatewren:///schedules`: an agent's own schedules as a resource.

use super::view::ListedSchedules;
use crate::dispatch::reference;
use gatewren_store::vault::Vault;
use gatewren_wire::protocol::{Resource, ResourceContents, RpcError};
use gatewren_wire::registry::{AddedResources, BoxFuture, Viewer};

/// The URI of the resource.
const SCHEDULES: &str = "gatewren:///schedules";

/// The viewer's own schedules, as `schedule_list` shows them.
pub struct ScheduleResources(pub Vault);

impl AddedResources for ScheduleResources {
    const PREFIX: &'static str = SCHEDULES;

    /// Listed only for an agent that has schedules.
    fn resources(&self, viewer: &Viewer) -> Vec<Resource> {
        let own = self.0.schedules().list_of(Some(&viewer.agent));
        let has_some = own.is_ok_and(|own| !own.is_empty());
        let one = has_some.then(|| Resource {
            uri: SCHEDULES.to_owned(),
            name: "schedules".to_owned(),
            description: Some(
                "This agent's schedules, with the result of the last runs".to_owned(),
            ),
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
        let read = (uri == SCHEDULES).then(|| ListedSchedules::of(&self.0, &viewer.agent));
        let read = read.transpose().map_err(|cause| {
            let reference = reference::next();
            tracing::error!(%cause, %reference, "cannot read the schedules");
            RpcError::internal(&reference)
        });
        let read = read.map(|own| own.map(|own| vec![ResourceContents::of_json(uri, &own)]));
        Box::pin(std::future::ready(read))
    }
}
