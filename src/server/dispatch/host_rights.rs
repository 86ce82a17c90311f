//! Judges calls about a container that has the rights of the host's root as calls on the host, and those about one that
//! has the rights of root in the container of LXC around it as calls in that container.

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

/// The word before the names of containers of Docker.
const DOCKER: &str = "docker:";

/// The facts about a container that name its rights over the host, and over the container of LXC around it.
const RIGHTS: [&str; 2] = ["host_rights", "lxc_rights"];

/// Returns whether a call would run something in a container that the state shows to have the rights of the host's root,
/// or of root in the container of LXC around it. The helper checks again what the state does not show yet.
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
    let document = inbox.state.document();
    RIGHTS.into_iter().any(|kind| {
        let place = ["public", "packageData", name, "engine", kind];
        let place = place
            .into_iter()
            .fold(Pointer::root(), |above, key| above.child(key));
        let rights = document.root.pointer(&place.to_string());
        rights
            .and_then(Value::as_array)
            .is_some_and(|rights| !rights.is_empty())
    })
}

/// Returns the container of LXC around the container of a call, for one of Docker inside LXC.
fn outer<'a>(tool: &Tool, arguments: &'a Map<String, Value>) -> Option<&'a str> {
    let Scope::Container(argument) = tool.scope() else {
        return None;
    };
    let name = arguments.get(argument)?.as_str()?.strip_prefix(DOCKER)?;
    name.split_once('@').map(|(_, outer)| outer)
}

/// Judges a call. One that would run with the rights of the host's root is judged as strictly as a command on the host. One
/// that would run with those of root in the container of LXC around it is denied to an agent that may not access that
/// container.
pub(super) fn judge_call(
    engine: &Engine,
    who: &Principal,
    tool: &Tool,
    arguments: &Map<String, Value>,
) -> Verdict {
    if !is_on_host(engine, tool, arguments) {
        return judge(who, tool, arguments);
    }
    match (outer(tool, arguments), engine.catalog.tool(ON_HOST)) {
        (Some(outer), _) if who.reach().container(outer) => judge(who, tool, arguments),
        (Some(_), _) => Verdict::Deny,
        (None, Some(on_host)) => judge_on_host(who, tool, on_host, arguments),
        (None, None) => judge(who, tool, arguments),
    }
}
