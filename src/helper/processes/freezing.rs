//! Freezes a running container while its files are copied, so that the copy is of one moment.

use std::time::Duration;

use tokio::time::timeout;

use gatewren_wire::operations::OperationRefusal;

use super::freeze_guard::{FreezeGuard, wait_until_frozen};
use super::step_error::StepError;
use crate::context::containers::RunningContainer;
use crate::context::operation_context::OperationContext;

/// How long freezing a container may take. After that its processes continue and the copy fails.
const FREEZE_TIME: Duration = Duration::from_secs(10);

/// Freezes a container until the guard is dropped; `None` if it is frozen already or has no freezer.
pub async fn freeze_for_copy(
    context: &mut OperationContext<'_>,
    running: &RunningContainer,
) -> Result<Option<FreezeGuard>, StepError> {
    let guard = FreezeGuard::begin(context.helper, running).map_err(|cause| {
        OperationRefusal::failed(format!("the container cannot be frozen: {cause}"))
    })?;
    let Some(guard) = guard else {
        return Ok(None);
    };
    let freezing = timeout(FREEZE_TIME, wait_until_frozen(running));
    if context.relay.wait(freezing).await?.is_ok() {
        return Ok(Some(guard));
    }
    let message = "the container could not be frozen in 10 s; a backup of it while it runs is possible (freeze: false)";
    Err(OperationRefusal::failed(message).into())
}
