//! Where a container's files are, and moving them to another place.

use std::time::Duration;

use crate::helper_client::{
    ContainerAction, ContainerRef, ContainerStorage, MovedContainer, Operation, StoreName,
};
use gatewren_base::sys::neutralise;

use super::super::access_filter::unmask_error;
use super::super::error::BackendError;
use super::super::long_work::{CallJob, LongOperation, ask_long};
use super::changes::unreadable_answer;
use super::containers::LxcView;

/// The timeout for reading: the container's files are counted.
const READ_TIME: Duration = Duration::from_secs(140);

/// The timeout for moving or removing a whole container.
const MOVE_TIME: Duration = Duration::from_hours(12);

impl LxcView {
    /// Returns where a container's files are and where they could be moved. Callers without access to the host do not
    /// see where the places are on it.
    pub async fn storage(&self, name: &ContainerRef) -> Result<ContainerStorage, BackendError> {
        let text = self
            .perform(name, ContainerAction::Storage {}, READ_TIME)
            .await?;
        let mut storage: ContainerStorage =
            serde_json::from_str(&text).map_err(|cause| unreadable_answer(&cause))?;
        let sees_host = self.access.host().is_ok();
        for store in &mut storage.stores {
            store.path = store.path.take().filter(|_| sees_host);
            let obstacle = store.obstacle.take();
            store.obstacle = obstacle.map(|words| neutralise(&words).into_owned());
        }
        if !sees_host {
            storage.path = None;
            storage.old_copy = storage.old_copy.map(|_| "yes".to_owned());
            for store in &mut storage.stores {
                let obstacle = store.obstacle.take();
                store.obstacle = obstacle
                    .map(|_| "it does not fit there; the owner's page shows why".to_owned());
            }
        }
        Ok(storage)
    }

    /// Moves a container's files; it is stopped during the copy.
    pub async fn move_to(
        &self,
        name: &ContainerRef,
        to: StoreName,
        grace: Duration,
        job: Option<CallJob>,
    ) -> Result<MovedContainer, BackendError> {
        let grace_s = u32::try_from(grace.as_secs()).unwrap_or(u32::MAX);
        let action = ContainerAction::Move { to, grace_s };
        let text = self.act_long(name, action, job).await?;
        let mut moved: MovedContainer =
            serde_json::from_str(&text).map_err(|cause| unreadable_answer(&cause))?;
        if self.access.host().is_err() {
            moved.path = None;
            moved.old_copy = None;
        }
        Ok(moved)
    }

    /// Removes the copy that the last move left.
    pub async fn remove_old_copy(
        &self,
        name: &ContainerRef,
        job: Option<CallJob>,
    ) -> Result<(), BackendError> {
        let action = ContainerAction::RemoveOldCopy {};
        self.act_long(name, action, job).await.map(drop)
    }

    async fn act_long(
        &self,
        name: &ContainerRef,
        action: ContainerAction,
        job: Option<CallJob>,
    ) -> Result<String, BackendError> {
        let asked = self.access.name(name);
        let operation = Operation::ContainerAction {
            container: asked.clone(),
            action,
        };
        let long = LongOperation::new(operation, MOVE_TIME);
        let answer = ask_long(&self.helper, long, job, &self.reference).await;
        unmask_error(name, &asked, answer)
    }
}
