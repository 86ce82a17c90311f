//! The intent of the current call while it is being written: what waits for it may be prepared, but not run.

use tokio::sync::watch;

/// What is known of the intent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IntentState {
    Unwritten,
    Written,
    /// It cannot be written.
    Failed,
}

tokio::task_local! {
    static INTENT: watch::Receiver<IntentState>;
}

/// Runs `work` while the intent of its call is being written, and returns both results.
///
/// `work` asks [`intent_is_written`] before it does anything that the intent must precede. A task that it spawns does
/// not know of the intent, so `work` must do that itself.
pub async fn beside_intent<E, T>(
    written: impl Future<Output = Result<(), E>>,
    work: impl Future<Output = T>,
) -> (Result<(), E>, T) {
    let (state, intent) = watch::channel(IntentState::Unwritten);
    let written = async {
        let written = written.await;
        state.send_replace(match written {
            Ok(()) => IntentState::Written,
            Err(_) => IntentState::Failed,
        });
        written
    };
    tokio::join!(written, INTENT.scope(intent, work))
}

/// Whether the intent of the current call may still be on its way to the disk.
pub fn intent_is_pending() -> bool {
    INTENT.try_with(|intent| *intent.borrow()) == Ok(IntentState::Unwritten)
}

/// Waits until the intent of the current call is on the disk, and returns false if it cannot be written. Outside
/// [`beside_intent`] it has been written before.
pub async fn intent_is_written() -> bool {
    let Ok(mut intent) = INTENT.try_with(watch::Receiver::clone) else {
        return true;
    };
    let state = intent.wait_for(|state| *state != IntentState::Unwritten);
    // A sender that has gone writes nothing more.
    state
        .await
        .is_ok_and(|state| *state == IntentState::Written)
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn work_waits_for_the_intent_where_it_asks() {
        assert!(intent_is_written().await && !intent_is_pending());
        for outcome in [Ok(()), Err("full")] {
            let (prepared, wait) = oneshot::channel();
            let written = async {
                wait.await.unwrap();
                outcome
            };
            let work = async {
                assert!(intent_is_pending());
                prepared.send(()).unwrap();
                let written = intent_is_written().await;
                (written, intent_is_pending())
            };
            let (end, (was_written, is_pending)) = beside_intent(written, work).await;
            assert_eq!((end, was_written), (outcome, outcome.is_ok()));
            assert!(!is_pending);
        }
    }
}
