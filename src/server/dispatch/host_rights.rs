//! Judges calls about a container that has the rights of the host's root as calls on the host.

use serde_json::{Map, Value};

use super::engine::Engine;
use gatewren_gate::auth::Principal;
use gatewren_gate::policy::{Verdict, judge, judge_on_host};
use gatewren_store::state::Pointer;
use gatewren_wire::registry::{HelperClass, Risk, Scope, Tool};

/// The tool for commands on the host.
const ON_HOST: &str = "system_shell";

/// The classes of tools that run something in a container, or place what runs there.
const RUNNING: [HelperClass; 2] = [HelperClass::ContainerShell, HelperClass::ContainerFiles];

/// Returns whether a call would run something in a container that the state shows to have the rights of the host's root.
/// The helper checks again what the state does not show yet.
pub(super) fn is_on_host(engine: &Engine, tool: &Tool, arguments: &Map<String, Value>) -> bool {
    let runs = tool.needs().is_some_and(|class| RUNNING.contains(&class));
    let Scope::Container(argument) = tool.scope() else {
        return false;
    };
    let name = arguments.get(argument).and_then(Value::as_str);
    let (Some(name), Some(inbox)) = (name, &engine.inbox) else {
        return false;
    };
    if !runs || tool.risk() == Risk::Read {
        return false;
    }
    let place = ["public", "packageData", name, "engine", "host_rights"];
    let place = place
        .into_iter()
        .fold(Pointer::root(), |above, key| above.child(key));
    let document = inbox.state.document();
    let rights = document.root.pointer(&place.to_string());
    rights
        .and_then(Value::as_array)
        .is_some_and(|rights| !rights.is_empty())
}

/// Judges a call. One that would run with the rights of the host's root is judged as strictly as a command on the host.
pub(super) fn judge_call(
    engine: &Engine,
    who: &Principal,
    tool: &Tool,
    arguments: &Map<String, Value>,
) -> Verdict {
    match engine.catalog.tool(ON_HOST) {
        Some(on_host) if is_on_host(engine, tool, arguments) => {
            judge_on_host(who, tool, on_host, arguments)
        }
        _ => judge(who, tool, arguments),
    }
}
