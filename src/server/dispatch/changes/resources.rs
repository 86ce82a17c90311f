//! `gatewren:///changes/{id}`: an agent's own changes as resources, added to those of another source.

use tokio::sync::watch;

use super::view::ChangeView;
use crate::dispatch::reference;
use gatewren_store::vault::{Change, Vault};
use gatewren_wire::protocol::{ResourceContents, ResourceTemplate, RpcError};
use gatewren_wire::registry::{AddedResources, BoxFuture, Viewer};

/// The URI prefix of changes.
const CHANGES: &str = "gatewren:///changes/";

/// The viewer's own changes. They are counted separately, because a decision of the owner is not a revision of the
/// state.
pub struct ChangeResources(pub Vault);

impl ChangeResources {
    /// Returns the change that a URI names, if it belongs to the viewer; another agent's change is not found.
    fn find(&self, viewer: &Viewer, uri: &str) -> Result<Option<Change>, RpcError> {
        let Some(id) = id(uri) else { return Ok(None) };
        let found = self.0.changes().get_of(&viewer.agent, id);
        found.map_err(|cause| {
            let reference = reference::next();
            tracing::error!(%cause, %reference, "cannot read a change");
            RpcError::internal(&reference)
        })
    }
}

/// Returns the id in the URI of a change, whether or not the change exists.
fn id(uri: &str) -> Option<&str> {
    let id = uri.strip_prefix(CHANGES)?;
    let digits = id.strip_prefix("chg_")?;
    let hexadecimal = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (digits.len() == 16 && digits.bytes().all(hexadecimal)).then_some(id)
}

impl AddedResources for ChangeResources {
    const PREFIX: &'static str = CHANGES;

    const IS_COUNTED: bool = true;

    fn templates(&self, _: &Viewer) -> Vec<ResourceTemplate> {
        vec![ResourceTemplate {
            uri_template: format!("{CHANGES}{{id}}"),
            name: "change".to_owned(),
            description: Some("A change that this agent proposed, with its status".to_owned()),
            mime_type: Some("application/json".to_owned()),
            ..ResourceTemplate::default()
        }]
    }

    fn read(
        &self,
        viewer: &Viewer,
        uri: &str,
    ) -> BoxFuture<Result<Option<Vec<ResourceContents>>, RpcError>> {
        let contents =
            |change: &Change| vec![ResourceContents::of_json(uri, &ChangeView::of(change))];
        let found = self.find(viewer, uri);
        let read = found.map(|change| change.as_ref().map(contents));
        Box::pin(std::future::ready(read))
    }

    /// Accepts every well-formed id, so that the answer does not reveal whether a change exists or who owns it.
    fn can_watch(&self, _: &Viewer, uri: &str) -> bool {
        id(uri).is_some()
    }

    fn count(&self) -> u64 {
        self.0.changes().newest().unwrap_or_else(|cause| {
            tracing::error!(%cause, "cannot read the inbox");
            0
        })
    }

    fn watch_count(&self) -> Option<watch::Receiver<u64>> {
        Some(self.0.changes().watch_inbox())
    }

    fn newest_change(&self, viewer: &Viewer, uri: &str, after: u64) -> Option<u64> {
        let change = self.find(viewer, uri).ok().flatten();
        let serial = change.map(|change| change.serial);
        serial.filter(|serial| *serial > after)
    }
}

#[cfg(test)]
mod tests {
    use super::super::resources::*;

    #[test]
    fn the_uri_of_a_change_ends_with_its_id_and_nothing_else() {
        assert_eq!(
            id("gatewren:///changes/chg_0123456789abcdef"),
            Some("chg_0123456789abcdef")
        );
        for other in [
            "gatewren:///changes/",
            "gatewren:///changes/chg_0123456789abcde",
            "gatewren:///changes/chg_0123456789ABCDEF",
            "gatewren:///changes/chg_0123456789abcdef/",
            "gatewren:///changes/x/chg_0123456789abcdef",
            "startos:///changes/chg_0123456789abcdef",
        ] {
            assert_eq!(id(other), None, "{other}");
        }
    }
}
