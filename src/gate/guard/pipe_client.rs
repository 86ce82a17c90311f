//! A client on a pipe: it is authenticated once, for as long as the pipe is open.

use super::{chain::Guard, refusal::Refusal};
use crate::auth::Principal;

/// The client that started this process and is connected by a pipe: only the guard creates one.
#[derive(Debug)]
pub struct AttachedClient {
    who: Principal,
}

impl AttachedClient {
    /// The agent.
    pub fn who(&self) -> &Principal {
        &self.who
    }
}

impl Guard {
    /// Authenticates the client on the pipe with this token. There is no Host and no Origin to check; the agent's
    /// limits apply as elsewhere, and its access ends with the pipe.
    pub fn attach(&self, token: Option<&str>) -> Result<AttachedClient, Refusal> {
        let who = self.identity.identify_token(token)?;
        Ok(AttachedClient { who })
    }
}
