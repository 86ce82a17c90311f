//! The precondition of a proposed call: the state of its target must not change before the call runs.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::dispatch::container_names::stack_members;
use gatewren_gate::auth::Principal;
use gatewren_store::state::{Pointer, State};
use gatewren_store::vault::Change;
use gatewren_wire::registry::{Scope, Tool};

/// The parts of a container's state that matter to a call about it: whether it runs, its current run, and its
/// definition. Addresses and ports change by themselves.
const OF_A_CONTAINER: [&str; 4] = ["config", "init_pid", "status", "unprivileged"];

/// The parts of a unit's state that matter.
const OF_A_UNIT: [&str; 4] = ["active", "enabled", "load", "main_pid"];

/// The parts of a container's state that matter to a call about its stack. Its id changes when it is created again, for
/// example from another image.
const OF_A_STACK_MEMBER: [&str; 3] = ["engine/id", "init_pid", "status"];

/// The most containers of a stack that a change depends on. The tools change no larger stack.
const MAX_MEMBERS: usize = 256;

/// Returns the places in the state that a call of a tool depends on, as JSON Pointers. A call that may affect
/// anything, such as a command on the host, has none. A call about a stack depends on each of its containers.
///
/// A target beyond the agent's reach has none either, like a target that does not exist: the agent must not learn
/// whether it changes.
pub(in crate::dispatch) fn rests_on(
    state: &State,
    who: &Principal,
    tool: &Tool,
    arguments: &Map<String, Value>,
) -> Vec<String> {
    let Some(target) = tool.target(arguments) else {
        return Vec::new();
    };
    let (place, parts) = match tool.scope() {
        Scope::Stack(_) => {
            let document = state.document();
            let members = stack_members(&document.root, who, target);
            let members = members.into_iter().take(MAX_MEMBERS);
            let pointers = members.flat_map(|one| places("packageData", one, &OF_A_STACK_MEMBER));
            return pointers.collect();
        }
        Scope::Container(argument) | Scope::HostOr(argument)
            if arguments.contains_key(argument) =>
        {
            if !who.reach().container(target) {
                return Vec::new();
            }
            ("packageData", &OF_A_CONTAINER)
        }
        Scope::Host | Scope::HostOr(_)
            if arguments.contains_key("unit") && who.reach().host() && who.reach().unit(target) =>
        {
            ("units", &OF_A_UNIT)
        }
        _ => return Vec::new(),
    };
    places(place, target, parts)
}

/// Returns the JSON Pointers of parts of a target's state; `/` in a part leads one level down.
fn places(place: &str, target: &str, parts: &[&str]) -> Vec<String> {
    let target = Pointer::root().child("public").child(place).child(target);
    let pointer = |part: &&str| {
        let keys = part.split('/');
        let place = keys.fold(target.clone(), |above, key| above.child(key));
        place.to_string()
    };
    parts.iter().map(pointer).collect()
}

/// Returns the newest revision at which the precondition of a change was touched since the proposal, if any. `now` is
/// what the call depends on now: a stack may have further containers.
pub(in crate::dispatch) fn newest_change_of_precondition(
    state: &State,
    change: &Change,
    now: &[String],
) -> Option<u64> {
    let newest_change = |pointer: &String| match Pointer::parse(pointer) {
        Ok(place) => state.newest_change(&place, change.revision),
        // A pointer that cannot be parsed counts as changed.
        Err(_) => Some(state.document().revision),
    };
    let places: BTreeSet<&String> = change.rests_on.iter().chain(now).collect();
    places.into_iter().filter_map(newest_change).max()
}
