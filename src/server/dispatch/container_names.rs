//! Turns the name of a container in a call into its reference: `jellyfin` into `docker:jellyfin` if only Docker has it.
//!
//! Everything after this, the policy, the inbox, the audit and the helper, sees the reference. Names are looked up among
//! the containers that the caller may see.

use serde_json::{Map, Value};

use super::engine::Engine;
use gatewren_gate::auth::Principal;
use gatewren_wire::registry::{Scope, Tool, ToolError};

/// The place of the containers in the state, with their references as keys.
const CONTAINERS: &str = "/public/packageData";

/// The argument for a container in tools that are not about one alone.
const USUAL_ARGUMENT: &str = "container";

/// The word of LXC before a name.
const LXC: &str = "lxc:";

/// Replaces the name of a container in the arguments of a call by its reference.
///
/// # Errors
/// An error for the model if containers of several runtimes have the name. It names their references.
pub(super) fn resolve_container(
    engine: &Engine,
    who: &Principal,
    tool: &Tool,
    arguments: &mut Map<String, Value>,
) -> Result<(), ToolError> {
    let argument = match tool.scope() {
        Scope::Container(argument) | Scope::HostOr(argument) => argument,
        Scope::Server | Scope::Host | Scope::Within => USUAL_ARGUMENT,
    };
    let (Some(Value::String(name)), Some(inbox)) = (arguments.get_mut(argument), &engine.inbox)
    else {
        return Ok(());
    };
    if let Some(of_lxc) = name.strip_prefix(LXC) {
        *name = of_lxc.to_owned();
        return Ok(());
    }
    if name.contains(':') || tool.makes_target() {
        return Ok(());
    }
    let document = inbox.state.document();
    let known = document.root.pointer(CONTAINERS).and_then(Value::as_object);
    let known = known.into_iter().flat_map(Map::keys);
    let visible = known.filter(|reference| who.reach().container(reference));
    if let Some(reference) = choose(name, visible.map(String::as_str))? {
        *name = reference;
    }
    Ok(())
}

/// Returns the reference that a name stands for; `None` if no container has it.
fn choose<'a>(
    name: &str,
    known: impl Iterator<Item = &'a str>,
) -> Result<Option<String>, ToolError> {
    let has_name = |reference: &&str| match reference.split_once(':') {
        Some((_, of_runtime)) => of_runtime == name,
        None => *reference == name,
    };
    let mut found: Vec<&str> = known.filter(has_name).collect();
    found.sort_unstable();
    match found.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some((*one).to_owned())),
        several => {
            let with_runtime = |reference: &&str| match reference.contains(':') {
                true => (*reference).to_owned(),
                false => format!("{LXC}{reference}"),
            };
            let named: Vec<String> = several.iter().map(with_runtime).collect();
            let named = named.join(" and ");
            let words = format!("several containers have the name '{name}': {named}");
            Err(ToolError::new(words).hint("Nothing was done. Name one of them."))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(name: &str) -> Result<Option<String>, String> {
        let known = ["media", "docker:jellyfin", "docker:media", "podman:web"];
        choose(name, known.into_iter()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_name_stands_for_the_only_container_that_has_it() {
        assert_eq!(chosen("jellyfin"), Ok(Some("docker:jellyfin".into())));
        assert_eq!(chosen("web"), Ok(Some("podman:web".into())));
        assert_eq!(chosen("none"), Ok(None));
        assert_eq!(chosen("docker"), Ok(None));
    }

    #[test]
    fn a_name_of_several_containers_is_refused_with_their_references() {
        let refused = chosen("media").unwrap_err();
        assert!(refused.contains("docker:media and lxc:media"), "{refused}");
    }
}
