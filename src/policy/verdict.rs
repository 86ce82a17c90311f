//! The verdict on one call.

use serde_json::{Map, Value};

use super::rules::{self, asks_owner, lets_propose, mode, shows};
use crate::auth::{GrantedCall, Principal};
use crate::config::Mode;
use crate::registry::{Permit, Risk, Tool};
use crate::vault::Begun;

/// What becomes of one call.
#[must_use]
#[derive(Debug)]
pub enum Verdict {
    /// It runs, with this key.
    Allow(Permit),
    /// It runs when the person at the client says so.
    Confirm,
    /// It waits for the owner's approval, and its client waits with it where it can.
    ConfirmOwner,
    /// The person at the client has said so: it runs, with this key.
    Confirmed(Permit),
    /// The owner has allowed such calls for a while: it runs, with this key.
    Granted(Permit),
    /// It waits for the owner's approval.
    Propose,
    /// The owner has approved just this, as the change of this id: it runs, with this key.
    Approved(Permit, String),
    /// There is no such tool for this agent.
    Deny,
}

impl Verdict {
    /// The verdict's name in the audit.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Allow(_) => "allow",
            Self::Confirm => "confirm",
            Self::ConfirmOwner => "confirm-owner",
            Self::Confirmed(_) => "confirmed",
            Self::Granted(_) => "granted",
            Self::Propose => "propose",
            Self::Approved(..) => "approved",
            Self::Deny => "deny",
        }
    }

    /// The change of the inbox that the call carries out.
    pub fn change(&self) -> Option<&str> {
        match self {
            Self::Approved(_, change) => Some(change),
            _ => None,
        }
    }
}

/// Judges a call of a tool by an agent. What its arguments name is for the tool to find: a container beyond the
/// agent's reach is answered by the same hands, in the same words, as one that does not exist.
pub fn judge(who: &Principal, tool: &Tool, arguments: &Map<String, Value>) -> Verdict {
    if !tool.scope().is_within(who.reach()) {
        return Verdict::Deny;
    }
    let granted = || {
        who.is_granted(&GrantedCall {
            tool: tool.name(),
            target: tool.target(arguments),
            arguments,
        })
    };
    match mode(who.policy(), tool) {
        Mode::Allow => Verdict::Allow(Permit::granted_by_policy()),
        Mode::Confirm | Mode::ConfirmOwner | Mode::Propose if granted() => {
            Verdict::Granted(Permit::granted_by_policy())
        }
        Mode::Confirm => Verdict::Confirm,
        Mode::ConfirmOwner => Verdict::ConfirmOwner,
        Mode::Propose => Verdict::Propose,
        Mode::Deny => Verdict::Deny,
    }
}

/// Lets a tool that only reads be asked, within an agent's reach, whether what its proposal is about exists. `None` for
/// any other tool. The answer is not shown to the agent, so its policy need not show it the tool.
pub fn judge_target_check(who: &Principal, tool: &Tool) -> Option<Permit> {
    let reads = tool.risk() == Risk::Read && tool.scope().is_within(who.reach());
    reads.then(Permit::granted_by_policy)
}

/// Whether calls of a tool by an agent are put to the person at its client.
pub fn confirms(who: &Principal, tool: &Tool) -> bool {
    mode(who.policy(), tool) == Mode::Confirm
}

/// Judges a change that the owner has approved and that was begun. What has come to be denied since is denied.
pub fn judge_approved(who: &Principal, tool: &Tool, begun: &Begun) -> Verdict {
    let arguments = begun.change().proven_arguments();
    match arguments.map(|arguments| judge(who, tool, &arguments)) {
        None | Some(Verdict::Deny) => Verdict::Deny,
        Some(_) => {
            let change = begun.change().id.clone();
            Verdict::Approved(Permit::granted_by_policy(), change)
        }
    }
}

/// Whether calls of a tool by an agent wait for the owner, unless they were granted.
pub fn is_proposed(who: &Principal, tool: &Tool) -> bool {
    asks_owner(mode(who.policy(), tool))
}

/// Whether a tool exists for an agent: what its policy denies, and what is of a part of the box that it does not
/// reach, is neither listed nor callable.
pub fn sees(who: &Principal, tool: &Tool) -> bool {
    tool.scope().is_within(who.reach()) && shows(who.policy(), tool)
}

/// Whether a tool that exists for an agent is in its list.
pub fn lists(who: &Principal, tool: &Tool) -> bool {
    sees(who, tool) && rules::lists(who.policy(), tool)
}

/// Whether an agent may propose calls of a tool.
pub fn proposes(who: &Principal, tool: &Tool) -> bool {
    tool.scope().is_within(who.reach()) && lets_propose(who.policy(), tool)
}
