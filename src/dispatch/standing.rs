//! Notices when another policy holds for somebody who listens: other tools are there then.

use std::sync::Arc;

use super::engine::{Engine, Succession};
use crate::auth::Principal;
use crate::registry::BoxFuture;

/// How it is with an agent as long as it listens.
pub(super) struct Standing {
    /// Absent where policies do not change, as for fixtures.
    succession: Option<Arc<Succession>>,
    who: Principal,
    /// The change that is waited for; kept, because whoever waits also waits for other things.
    coming: Option<BoxFuture<Option<Principal>>>,
    news: bool,
}

impl Standing {
    /// From now on, for this agent.
    pub(super) fn new(engine: &Engine, who: &Principal) -> Self {
        Self {
            succession: engine.succession(),
            who: who.clone(),
            coming: None,
            news: false,
        }
    }

    /// The agent as it was told of last.
    pub(super) fn who(&self) -> &Principal {
        &self.who
    }

    /// The agent came again: another policy may hold for it than when it listened first.
    pub(super) fn follow(&mut self, who: &Principal) {
        self.news |= other_tools(&self.who, who);
        self.who = who.clone();
        self.coming = None;
    }

    /// Waits until other tools are there for the agent than it was told last. Dropping this loses nothing.
    pub(super) async fn changes(&mut self) {
        while !std::mem::take(&mut self.news) {
            let Some(succession) = &self.succession else {
                return std::future::pending().await;
            };
            let who = &self.who;
            let coming = self.coming.get_or_insert_with(|| succession(who.clone()));
            let later = coming.await;
            let Some(later) = later else {
                // It is let in no more: whoever holds its stream ends it.
                self.succession = None;
                continue;
            };
            self.follow(&later);
        }
    }
}

fn other_tools(before: &Principal, after: &Principal) -> bool {
    !before.policy().has_tools_of(after.policy()) || before.reach() != after.reach()
}
