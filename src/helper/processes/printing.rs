//! Reads on a blocking thread and prints the result.

use gatewren_wire::operations::{Ending, Frame, Stream};

use crate::context::output_relay::Pump;
use crate::context::outputs::CHUNK_BYTES;
use crate::context::refusal::Refusal;

/// Reads on a blocking thread, since a disk may not respond, and prints the result.
pub async fn print(
    pump: &mut Pump,
    read: impl FnOnce() -> Result<Vec<u8>, Refusal> + Send + 'static,
) -> Result<Ending, Refusal> {
    let read = tokio::task::spawn_blocking(read);
    let bytes = match pump.wait(read).await {
        Ok(Ok(bytes)) => bytes?,
        Ok(Err(cause)) => return Err(Refusal::failed(format!("reading failed: {cause}"))),
        Err(why) => return Ok(Ending::Killed { why }),
    };
    for chunk in bytes.chunks(CHUNK_BYTES) {
        pump.say(&Frame::Output(Stream::Stdout, chunk.to_vec()))
            .await;
    }
    Ok(Ending::Exited { code: 0 })
}
