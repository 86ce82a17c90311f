//! One question to the helper, answered as text or with a sentence on what went wrong.

use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::helper_client::{Capture, Ending, Finished, Helper, KillReason, Limits, Operation};

use super::error::{BackendError, ErrorKind};

/// The most that is kept of an answer, in bytes: the names of ten thousand containers. More is cut.
const CAPTURE: Capture = Capture {
    head: 1024 * 1024,
    tail: 0,
};

/// The limits of one operation that may take this long.
pub fn limits(time: Duration) -> Limits {
    Limits {
        timeout_ms: u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
        output_bytes: 4 * 1024 * 1024,
        processes: 64,
    }
}

/// Has the helper do one thing and returns what it printed; `reference` names the call in its log.
pub async fn ask(
    helper: &Helper,
    operation: Operation,
    time: Duration,
    reference: &str,
) -> Result<String, BackendError> {
    let finished = helper
        .run(operation, limits(time), reference, CAPTURE)
        .await?;
    answer(&finished)
}

/// The same for what is not text; what it printed first, as far as it is kept.
pub async fn ask_bytes(
    helper: &Helper,
    operation: Operation,
    time: Duration,
    reference: &str,
) -> Result<Vec<u8>, BackendError> {
    let finished = helper
        .run(operation, limits(time), reference, CAPTURE)
        .await?;
    match obstacle(&finished.ending, &finished.stderr.text_lossy()) {
        Some(obstacle) => Err(obstacle),
        None => Ok(finished.stdout.head),
    }
}

/// The same for what is a document in JSON.
pub async fn ask_json<T: DeserializeOwned>(
    helper: &Helper,
    operation: Operation,
    time: Duration,
    reference: &str,
) -> Result<T, BackendError> {
    let bytes = ask_bytes(helper, operation, time, reference).await?;
    serde_json::from_slice(&bytes).map_err(|cause| {
        let message = format!("what the helper says cannot be read: {cause}");
        BackendError::new(ErrorKind::Failed, message)
    })
}

/// Why an operation ended as it did, unless it ended well.
pub fn obstacle(ending: &Ending, heard: &str) -> Option<BackendError> {
    let failed = |message: String| Some(BackendError::new(ErrorKind::Failed, message));
    let heard = heard.trim();
    match ending {
        Ending::Exited { code: 0 } => None,
        Ending::Exited { code } if heard.is_empty() => failed(format!(
            "the program that does this gave no reason (exit code {code})"
        )),
        Ending::Exited { .. } => failed(heard.to_owned()),
        Ending::Signalled { signal } => failed(format!(
            "the program that does this was killed by signal {signal}"
        )),
        Ending::Killed {
            why: KillReason::Timeout,
        } => failed("the program that does this did not end in time and was killed".to_owned()),
        Ending::Killed { why } => {
            failed(format!("the program that does this was killed ({why:?})"))
        }
        Ending::Refused { code, message } => Some(BackendError::refused(*code, message.clone())),
    }
}

fn answer(finished: &Finished) -> Result<String, BackendError> {
    match obstacle(&finished.ending, &finished.stderr.text_lossy()) {
        Some(obstacle) => Err(obstacle),
        None => Ok(finished.stdout.text_lossy()),
    }
}

#[cfg(test)]
mod tests {
    use crate::helper_client::RefusalCode;

    use super::*;

    #[test]
    fn endings_become_sentences() {
        let refused = |code| Ending::Refused {
            code,
            message: "lxc-start is not installed; install it with: apt install lxc".into(),
        };
        let missing = obstacle(&refused(RefusalCode::MissingProgram), "").unwrap();
        assert_eq!(missing.kind, ErrorKind::Unavailable);
        assert!(
            missing.to_string().ends_with("apt install lxc"),
            "{missing}"
        );
        let gone = obstacle(&refused(RefusalCode::NoSuchContainer), "").unwrap();
        assert_eq!(gone.kind, ErrorKind::NotFound);

        let exited = |code, heard| obstacle(&Ending::Exited { code }, heard);
        assert!(exited(0, "a warning").is_none());
        assert_eq!(
            exited(1, " no such bridge\n").unwrap().to_string(),
            "no such bridge"
        );
        assert!(exited(1, "").unwrap().to_string().contains("exit code 1"));
    }
}
