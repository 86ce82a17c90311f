//! What a proposed call rests on: the state of its target, which must not have moved before it runs.

use serde_json::{Map, Value};

use crate::auth::Principal;
use crate::registry::{Scope, Tool};
use crate::state::{Pointer, State};
use crate::vault::Change;

/// What of a container matters to a call about it: whether it runs, as which run, and how it is defined. Addresses
/// and ports come and go by themselves.
const OF_A_CONTAINER: [&str; 4] = ["config", "init_pid", "status", "unprivileged"];

/// The same of a unit.
const OF_A_UNIT: [&str; 4] = ["active", "enabled", "load", "main_pid"];

/// The places in the state that a call of a tool rests on, as JSON Pointers; none for a call that may be about
/// anything, such as a command on the host.
///
/// What its agent does not reach it rests on as little as on what does not exist: whether that moves is not for the
/// agent to learn.
pub(super) fn rests_on(
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

/// The newest revision at which what a change rests on has moved since it was proposed, if it has.
pub(super) fn moved(state: &State, change: &Change) -> Option<u64> {
    let touched = |pointer: &String| match Pointer::parse(pointer) {
        Ok(place) => state.touched(&place, change.revision),
        // What cannot be read may have moved.
        Err(_) => Some(state.document().revision),
    };
    change.rests_on.iter().filter_map(touched).max()
}
