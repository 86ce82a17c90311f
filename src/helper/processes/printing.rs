//! Reads on a blocking thread and prints the result.

use gatewren_wire::operations::{OperationEnd, OperationRefusal};

use crate::context::output_relay::OutputRelay;
use crate::context::outputs::CHUNK_BYTES;

/// Reads on a blocking thread, since a disk may not respond, and prints the result.
pub async fn print(
    relay: &mut OutputRelay,
    read: impl FnOnce() -> Result<Vec<u8>, OperationRefusal> + Send + 'static,
) -> Result<OperationEnd, OperationRefusal> {
    let read = tokio::task::spawn_blocking(read);
    let bytes = match relay.wait(read).await {
        Ok(Ok(bytes)) => bytes?,
        Ok(Err(cause)) => return Err(OperationRefusal::failed(format!("reading failed: {cause}"))),
        Err(why) => return Ok(OperationEnd::Killed { why }),
    };
    for chunk in bytes.chunks(CHUNK_BYTES) {
        relay.write_stdout(chunk.to_vec()).await;
    }
    Ok(OperationEnd::SUCCESS)
}
