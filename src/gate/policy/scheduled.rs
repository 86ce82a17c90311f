//! Judges the runs of schedules: by the agent's policy at creation and by its policy now, whichever is narrower.

use super::verdict::Verdict;
use crate::auth::Principal;
use gatewren_base::config::Policy;
use gatewren_store::vault::{Schedule, StartedRun};
use gatewren_wire::registry::Permit;

/// Returns the agent with the policy that it had when it created a schedule. `None` if that policy cannot be read.
pub fn as_of_creation(who: &Principal, schedule: &Schedule) -> Option<Principal> {
    let policy = Policy {
        preset: schedule.preset.parse().ok()?,
        overrides: serde_json::from_str(&schedule.overrides).ok()?,
    };
    Some(who.under_policy(policy))
}

/// Judges a run that was recorded. `then` is the verdict of the policy at creation, `now` that of today.
///
/// A call that either denies is denied. A call that either asks somebody about runs only if the owner has approved the
/// schedule, which covers exactly this call.
pub fn judge_scheduled(then: &Verdict, now: &Verdict, begun: &StartedRun) -> Verdict {
    let runs_alone = |verdict: &Verdict| matches!(verdict, Verdict::Allow(_) | Verdict::Granted(_));
    let schedule = begun.schedule();
    match (then, now) {
        (Verdict::Deny, _) | (_, Verdict::Deny) => Verdict::Deny,
        (then, now) if schedule.approval.is_some() || runs_alone(then) && runs_alone(now) => {
            Verdict::Scheduled(Permit::granted_by_policy(), schedule.id.clone())
        }
        _ => Verdict::Propose,
    }
}
