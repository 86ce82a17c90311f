//! Runs one operation in the helper and returns its output, or an error with a readable message.

use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::helper_client::{
    Capture, FinishedOperation, HelperClient, KillReason, Operation, OperationEnd, OperationLimits,
};

use super::error::{BackendError, ErrorKind};

/// How much of an output is kept: enough for the names of ten thousand containers. The rest is cut.
pub const CAPTURE: Capture = Capture {
    head: 1024 * 1024,
    tail: 0,
};

/// Returns the limits of an operation with this timeout.
pub fn limits(time: Duration) -> OperationLimits {
    OperationLimits {
        timeout_ms: u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
        output_bytes: 4 * 1024 * 1024,
        processes: 64,
    }
}

/// Runs an operation and returns its output as text; `reference` identifies the call in the
/// helper's log.
pub async fn ask(
    helper: &HelperClient,
    operation: Operation,
    time: Duration,
    reference: &str,
) -> Result<String, BackendError> {
    let finished = helper
        .run(operation, limits(time), reference, CAPTURE)
        .await?;
    answer(&finished)
}

/// Like `ask`, for output that is not text; returns the captured beginning.
pub async fn ask_bytes(
    helper: &HelperClient,
    operation: Operation,
    time: Duration,
    reference: &str,
) -> Result<Vec<u8>, BackendError> {
    let finished = helper
        .run(operation, limits(time), reference, CAPTURE)
        .await?;
    match operation_error(&finished.ending, &finished.stderr.text_lossy()) {
        Some(operation_error) => Err(operation_error),
        None => Ok(finished.stdout.head),
    }
}

/// Like `ask`, for output that is JSON.
pub async fn ask_json<T: DeserializeOwned>(
    helper: &HelperClient,
    operation: Operation,
    time: Duration,
    reference: &str,
) -> Result<T, BackendError> {
    let bytes = ask_bytes(helper, operation, time, reference).await?;
    serde_json::from_slice(&bytes).map_err(|cause| {
        let message = format!("the helper's answer is invalid: {cause}");
        BackendError::new(ErrorKind::Failed, message)
    })
}

/// Returns the error of an operation's end; `None` if it succeeded.
pub fn operation_error(ending: &OperationEnd, stderr: &str) -> Option<BackendError> {
    let failed = |message: String| Some(BackendError::new(ErrorKind::Failed, message));
    let stderr = stderr.trim();
    match ending {
        OperationEnd::Exited { code: 0 } => None,
        OperationEnd::Exited { code } if stderr.is_empty() => failed(format!(
            "the program failed without a message (exit code {code})"
        )),
        OperationEnd::Exited { .. } => failed(stderr.to_owned()),
        OperationEnd::Signalled { signal } => {
            failed(format!("the program was killed by signal {signal}"))
        }
        OperationEnd::Killed {
            why: KillReason::Timeout,
        } => failed("the program did not end in time and was killed".to_owned()),
        OperationEnd::Killed { why } => failed(format!("the program was killed: {why}")),
        OperationEnd::Refused(refusal) => Some(refusal.clone().into()),
    }
}

/// Returns the output of an operation that succeeded.
pub fn answer(finished: &FinishedOperation) -> Result<String, BackendError> {
    match operation_error(&finished.ending, &finished.stderr.text_lossy()) {
        Some(operation_error) => Err(operation_error),
        None => Ok(finished.stdout.text_lossy()),
    }
}

#[cfg(test)]
mod tests {
    use crate::helper_client::{OperationRefusal, RefusalCode};

    use super::*;

    #[test]
    fn endings_become_sentences() {
        let words = "lxc-start is not installed; install it with: apt install lxc";
        let refused = |code| OperationRefusal::new(code, words).into();
        let missing = operation_error(&refused(RefusalCode::MissingProgram), "").unwrap();
        assert_eq!(missing.kind, ErrorKind::Unavailable);
        assert!(
            missing.to_string().ends_with("apt install lxc"),
            "{missing}"
        );
        let gone = operation_error(&refused(RefusalCode::NoSuchContainer), "").unwrap();
        assert_eq!(gone.kind, ErrorKind::NotFound);

        let exited = |code, stderr| operation_error(&OperationEnd::Exited { code }, stderr);
        assert!(exited(0, "a warning").is_none());
        assert_eq!(
            exited(1, " no such bridge\n").unwrap().to_string(),
            "no such bridge"
        );
        assert!(exited(1, "").unwrap().to_string().contains("exit code 1"));
    }
}
