//! A client at the other end of a pipe: it is known once, for as long as the pipe is open.

use super::{chain::Guard, refusal::Refusal};
use crate::auth::Principal;

/// A client that has started this process and talks to nobody else: only the guard makes one.
#[derive(Debug)]
pub struct Attached {
    who: Principal,
}

impl Attached {
    /// The agent.
    pub fn who(&self) -> &Principal {
        &self.who
    }
}

impl Guard {
    /// Lets in whoever holds the pipe with this token. There is no host and no origin to look at here;
    /// the agent's limits hold as elsewhere, and its end is the pipe's.
    pub fn attach(&self, token: Option<&str>) -> Result<Attached, Refusal> {
        let who = self.identity.identify_token(token)?;
        Ok(Attached { who })
    }
}
