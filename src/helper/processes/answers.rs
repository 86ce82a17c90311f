//! Work that the helper does itself, without a host program, and its results as JSON.

use gatewren_wire::operations::OperationRefusal;

/// Runs `work` to completion on a blocking thread, even if the caller stops waiting.
pub async fn to_its_end<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, OperationRefusal> + Send + 'static,
) -> Result<T, OperationRefusal> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|cause| {
        Err(OperationRefusal::failed(format!(
            "the operation was aborted: {cause}"
        )))
    })
}

/// Serializes facts as one line of JSON.
pub fn line(facts: &impl serde::Serialize) -> Vec<u8> {
    // Plain numbers and strings always serialize.
    let mut line = serde_json::to_vec(facts).unwrap_or_default();
    line.push(b'\n');
    line
}
