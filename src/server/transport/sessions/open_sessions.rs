//! The session table as the session tools see it.

use std::pin::Pin;
use std::time::Duration;

use uuid::Uuid;

use super::registry::Sessions;
use crate::dispatch::{OpenSession, OpenSessions};

impl OpenSessions for Sessions {
    fn of_agent(&self, agent: &str) -> Vec<OpenSession> {
        let shown = |(name, idle, revision): (Uuid, Option<Duration>, _)| OpenSession {
            session: name,
            current: false,
            in_use: idle.is_none(),
            idle_s: idle.map(|idle| idle.as_secs()),
            revision,
        };
        self.shown_to(agent).into_iter().map(shown).collect()
    }

    fn end_of_agent<'a>(
        &'a self,
        agent: &'a str,
        name: Uuid,
    ) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>> {
        Box::pin(self.end_named(agent, name))
    }
}
