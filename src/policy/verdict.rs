//! The verdict on one call.

use super::rules::{Mode, mode};
use crate::auth::Principal;
use crate::registry::{Permit, Tool};

/// What becomes of one call.
#[must_use]
#[derive(Debug)]
pub enum Verdict {
    /// It runs, with this key.
    Allow(Permit),
    /// It would wait for the owner's approval.
    Propose,
    /// There is no such tool for this agent.
    Deny,
}

impl Verdict {
    /// The verdict's name in the audit.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Allow(_) => "allow",
            Self::Propose => "propose",
            Self::Deny => "deny",
        }
    }
}

/// Judges a call of a tool by an agent.
pub fn judge(who: &Principal, tool: &Tool) -> Verdict {
    match mode(who.preset(), tool.risk()) {
        Mode::Allow => Verdict::Allow(Permit::granted_by_policy()),
        Mode::Propose => Verdict::Propose,
        Mode::Deny => Verdict::Deny,
    }
}

/// Whether a tool exists for an agent: what its policy denies is neither listed nor callable.
pub fn sees(who: &Principal, tool: &Tool) -> bool {
    mode(who.preset(), tool.risk()) != Mode::Deny
}
