//! The precondition of a proposed call: the state of its target must not change before the call runs.

use serde_json::{Map, Value};

use gatewren_gate::auth::Principal;
use gatewren_store::state::{Pointer, State};
use gatewren_store::vault::Change;
use gatewren_wire::registry::{Scope, Tool};

/// The parts of a container's state that matter to a call about it: whether it runs, its current run, and its
/// definition. Addresses and ports change by themselves.
const OF_A_CONTAINER: [&str; 4] = ["config", "init_pid", "status", "unprivileged"];

/// The parts of a unit's state that matter.
const OF_A_UNIT: [&str; 4] = ["active", "enabled", "load", "main_pid"];

/// Returns the places in the state that a call of a tool depends on, as JSON Pointers. A call that may affect
/// anything, such as a command on the host, has none.
///
/// A target beyond the agent's reach has none either, like a target that does not exist: the agent must not learn
/// whether it changes.
pub(in crate::dispatch) fn rests_on(
    who: &Principal,
    tool: &Tool,
    arguments: &Map<String, Value>,
) -> Vec<String> {
    let Some(target) = tool.target(arguments) else {
        return Vec::new();
    };
    let (place, parts) = match tool.scope() {
        Scope::Container(argument) | Scope::HostOr(argument)
            if arguments.contains_key(argument) =>
        {
            if !who.reach().container(target) {
                return Vec::new();
            }
            ("packageData", OF_A_CONTAINER)
        }
        Scope::Host | Scope::HostOr(_)
            if arguments.contains_key("unit") && who.reach().host() && who.reach().unit(target) =>
        {
            ("units", OF_A_UNIT)
        }
        _ => return Vec::new(),
    };
    let above = ["public", place, target].into_iter();
    let above = above.fold(Pointer::root(), |above, key| above.child(key));
    let pointers = parts.map(|part| above.child(part).to_string());
    pointers.to_vec()
}

/// Returns the newest revision at which the precondition of a change was touched since the proposal, if any.
pub(in crate::dispatch) fn newest_change_of_precondition(
    state: &State,
    change: &Change,
) -> Option<u64> {
    let newest_change = |pointer: &String| match Pointer::parse(pointer) {
        Ok(place) => state.newest_change(&place, change.revision),
        // A pointer that cannot be parsed counts as changed.
        Err(_) => Some(state.document().revision),
    };
    change.rests_on.iter().filter_map(newest_change).max()
}
