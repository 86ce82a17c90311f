//! The verdict on a call.

use serde_json::{Map, Value};

use super::rules::{
    self, asks_owner, lets_propose, may_have_mode, mode, mode_of_call, shows, stricter_argument,
};
use crate::auth::{GrantedCall, Principal};
use gatewren_base::config::Mode;
use gatewren_store::vault::StartedChange;
use gatewren_wire::registry::{Permit, Risk, Tool};

/// The decision about a call.
#[must_use]
#[derive(Debug)]
pub enum Verdict {
    /// The call runs, with this permit.
    Allow(Permit),
    /// The call runs after the person at the client has agreed.
    Confirm,
    /// The call waits for the owner's approval. If the client can wait, it waits for the decision.
    ConfirmOwner,
    /// The person at the client has agreed: the call runs, with this permit.
    Confirmed(Permit),
    /// A grant of the owner allows the call: it runs, with this permit.
    Granted(Permit),
    /// The call waits for the owner's approval in the inbox.
    Propose,
    /// The owner has approved exactly this call, as the change with this id: it runs, with this permit.
    Approved(Permit, String),
    /// The call is a run of the schedule with this id: it runs, with this permit.
    Scheduled(Permit, String),
    /// The tool does not exist for this agent.
    Deny,
}

impl Verdict {
    /// Returns the verdict's name in the audit.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Allow(_) => "allow",
            Self::Confirm => "confirm",
            Self::ConfirmOwner => "confirm-owner",
            Self::Confirmed(_) => "confirmed",
            Self::Granted(_) => "granted",
            Self::Propose => "propose",
            Self::Approved(..) => "approved",
            Self::Scheduled(..) => "scheduled",
            Self::Deny => "deny",
        }
    }

    /// Returns the change of the inbox that the call applies, or the schedule that it is a run of.
    pub fn change(&self) -> Option<&str> {
        match self {
            Self::Approved(_, id) | Self::Scheduled(_, id) => Some(id),
            _ => None,
        }
    }
}

/// Judges a call of a tool whose container has the rights of the host's root: as strictly as a call of `on_host`, the
/// tool for commands on the host. Without access to the host it is denied.
pub fn judge_on_host(
    who: &Principal,
    tool: &Tool,
    on_host: &Tool,
    arguments: &Map<String, Value>,
) -> Verdict {
    if !on_host.scope().is_within(who.reach()) {
        return Verdict::Deny;
    }
    let verdict = judge(who, tool, arguments);
    match (mode(who.policy(), on_host), verdict) {
        (Mode::Deny, _) => Verdict::Deny,
        (stricter @ (Mode::Confirm | Mode::ConfirmOwner | Mode::Propose), Verdict::Allow(_)) => {
            asked(stricter)
        }
        (stricter @ (Mode::ConfirmOwner | Mode::Propose), Verdict::Confirm) => asked(stricter),
        (Mode::Propose, Verdict::ConfirmOwner) => Verdict::Propose,
        (_, verdict) => verdict,
    }
}

/// Returns the verdict of a mode that asks somebody.
fn asked(mode: Mode) -> Verdict {
    match mode {
        Mode::Confirm => Verdict::Confirm,
        Mode::ConfirmOwner => Verdict::ConfirmOwner,
        _ => Verdict::Propose,
    }
}

/// Judges a call of a tool by an agent. The tool itself checks the targets in the arguments: for an inaccessible
/// container it returns the same answer as for a missing one.
pub fn judge(who: &Principal, tool: &Tool, arguments: &Map<String, Value>) -> Verdict {
    if !tool.scope().is_within(who.reach()) {
        return Verdict::Deny;
    }
    let granted = || {
        who.is_granted(&GrantedCall {
            tool: tool.name(),
            target: tool.target(arguments),
            arguments,
            only_exact: stricter_argument(tool, arguments).is_some(),
        })
    };
    match mode_of_call(who.policy(), tool, arguments) {
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

/// Returns a permit to check, within an agent's access, that the target of a proposal exists. `None` for a tool
/// that does not only read. The agent does not see the answer, so its policy need not show it the tool.
pub fn judge_target_check(who: &Principal, tool: &Tool) -> Option<Permit> {
    let reads = tool.risk() == Risk::Read && tool.scope().is_within(who.reach());
    reads.then(Permit::granted_by_policy)
}

/// Returns whether calls of a tool by an agent may need a confirmation by the person at the client.
pub fn confirms(who: &Principal, tool: &Tool) -> bool {
    may_have_mode(who.policy(), tool, Mode::Confirm)
}

/// Judges an approved change that was started. A call that the policy denies by now is denied.
pub fn judge_approved(who: &Principal, tool: &Tool, begun: &StartedChange) -> Verdict {
    let arguments = begun.change().proven_arguments();
    match arguments.map(|arguments| judge(who, tool, &arguments)) {
        None | Some(Verdict::Deny) => Verdict::Deny,
        Some(_) => {
            let change = begun.change().id.clone();
            Verdict::Approved(Permit::granted_by_policy(), change)
        }
    }
}

/// Returns whether calls of a tool by an agent wait for the owner, unless a grant allows them.
pub fn is_proposed(who: &Principal, tool: &Tool) -> bool {
    asks_owner(mode(who.policy(), tool))
}

/// Returns whether a tool exists for an agent. A tool that the policy denies, or that needs access which the agent
/// does not have, is neither listed nor callable.
pub fn sees(who: &Principal, tool: &Tool) -> bool {
    tool.scope().is_within(who.reach()) && shows(who.policy(), tool)
}

/// Returns whether a tool exists for an agent and is listed.
pub fn lists(who: &Principal, tool: &Tool) -> bool {
    sees(who, tool) && rules::lists(who.policy(), tool)
}

/// Returns whether an agent may propose calls of a tool.
pub fn proposes(who: &Principal, tool: &Tool) -> bool {
    tool.scope().is_within(who.reach()) && lets_propose(who.policy(), tool)
}
