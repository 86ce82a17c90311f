//! Answers that are read or made here and not printed by a tool.

use crate::exec::{Ending, Frame, Stream};

use super::{outputs::CHUNK_BYTES, pump::Pump, refusal::Refusal};

/// Reads on a thread of its own, since a disk may not answer, and prints what was read.
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

/// Does on a thread of its own what has to be done to its end, whether somebody still waits for it or not.
pub async fn to_its_end<T: Send + 'static>(
    deed: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let done = tokio::task::spawn_blocking(deed).await;
    done.unwrap_or_else(|cause| Err(Refusal::failed(format!("it broke off: {cause}"))))
}

/// Facts as a line of JSON.
pub fn line(facts: &impl serde::Serialize) -> Vec<u8> {
    // Plain numbers and texts: there is nothing that JSON cannot hold.
    let mut line = serde_json::to_vec(facts).unwrap_or_default();
    line.push(b'\n');
    line
}
