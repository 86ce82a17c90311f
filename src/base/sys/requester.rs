//! The requester of the current task: set where a request is handled, read where the helper is called.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

tokio::task_local! {
    static REQUESTER: Requester;
}

/// On whose behalf the front requests an operation of the helper. The helper uses it only to divide its places
/// among requesters, because a compromised front can send any requester.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Requester {
    /// The agent of this id.
    Agent(Arc<str>),
    /// The owner: their page, their command line, a change that they approved.
    Owner,
    /// The observer, which keeps the state document current.
    Observer,
}

/// Runs a future on behalf of a requester. A task that it spawns has no requester unless it is set there again.
pub async fn on_behalf_of<F: Future>(requester: Requester, future: F) -> F::Output {
    REQUESTER.scope(requester, future).await
}

/// The requester of the current task; `None` outside [`on_behalf_of`].
pub fn current_requester() -> Option<Requester> {
    REQUESTER.try_with(Requester::clone).ok()
}

/// Returns a future for another task that runs on behalf of this one's requester.
pub fn on_same_behalf<F: Future>(future: F) -> impl Future<Output = F::Output> {
    let requester = current_requester();
    async move {
        match requester {
            Some(requester) => on_behalf_of(requester, future).await,
            None => future.await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_requester_is_set_for_its_future_only() {
        assert_eq!(current_requester(), None);
        let inner = on_behalf_of(Requester::Owner, async {
            let agent = Requester::Agent("a".into());
            let innermost = on_behalf_of(agent, async { current_requester() }).await;
            (current_requester(), innermost)
        });
        let (outer, innermost) = inner.await;
        assert_eq!(outer, Some(Requester::Owner));
        assert_eq!(innermost, Some(Requester::Agent("a".into())));
        assert_eq!(current_requester(), None);
    }

    #[tokio::test]
    async fn another_task_can_keep_the_requester() {
        let ask = || on_same_behalf(async { current_requester() });
        assert_eq!(tokio::spawn(ask()).await.unwrap(), None);
        let kept = on_behalf_of(Requester::Observer, async { tokio::spawn(ask()).await });
        assert_eq!(kept.await.unwrap(), Some(Requester::Observer));
    }
}
