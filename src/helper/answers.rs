//! What is done here and not by a tool, and facts in the form in which they are told.

use super::refusal::Refusal;

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
