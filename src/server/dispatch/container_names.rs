//! Turns the name of a container or a stack in a call into its reference: `jellyfin` into `docker:jellyfin` if only
//! Docker has it.
//!
//! Everything after this, the policy, the inbox, the audit and the helper, sees the reference. Names are looked up among
//! the containers that the caller may see: first in the state, then once on the host, because the state shows a new
//! container only after a moment.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::timeout;

use super::engine::Engine;
use gatewren_base::sys::{Requester, on_behalf_of};
use gatewren_gate::auth::Principal;
use gatewren_wire::registry::{Scope, Tool, ToolError};

/// How long the host is asked for a name that the state does not have. Afterwards the name is used as it is: that of a
/// container of LXC.
const QUESTION_TIME: Duration = Duration::from_secs(2);

/// The place of the containers in the state, with their references as keys.
const CONTAINERS: &str = "/public/packageData";

/// What Compose says in the facts about a container.
const COMPOSE: &str = "/engine/compose";

/// The argument for a container in tools that are not about one alone.
const USUAL_ARGUMENT: &str = "container";

/// The word of LXC before a name.
const LXC: &str = "lxc:";

/// Whether the name of a container in a call is a reference now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameLookup {
    /// It is one, or the call has none.
    Done,
    /// No container in the state has the name; [`ask_for_container`] asks the host.
    Unknown,
}

/// Who names a container, and the reference of the call in the helper's log.
#[derive(Debug, Clone, Copy)]
pub(super) struct NameRequest<'a> {
    /// The agent.
    pub who: &'a Principal,
    /// The reference.
    pub reference: &'a str,
}

/// The arguments of a call, and the container inside that they name.
pub(super) struct NamedContainer<'a> {
    /// The arguments, by this server's names.
    pub arguments: &'a mut Map<String, Value>,
    /// Part of the name of the container inside.
    pub inside: Option<String>,
}

/// Replaces the name of a container in the arguments of a call by its reference, if the state has it.
///
/// # Errors
/// An error for the model if containers of several runtimes have the name. It names their references.
pub(super) fn resolve_container(
    engine: &Engine,
    who: &Principal,
    tool: &Tool,
    arguments: &mut Map<String, Value>,
) -> Result<NameLookup, ToolError> {
    if let Scope::Stack(argument) = tool.scope() {
        return resolve_stack(engine, who, argument, arguments).map(|()| NameLookup::Done);
    }
    match arguments.get_mut(container_argument(tool)) {
        Some(Value::String(name)) if tool.makes_target() => {
            remove_lxc(name);
            Ok(NameLookup::Done)
        }
        Some(Value::String(name)) => find_in_state(engine, who, name),
        _ => Ok(NameLookup::Done),
    }
}

/// Replaces the reference of a container of LXC by that of the container of Docker inside it that has this name, or has
/// this text in its name. In the dialect of `StartOS` a call names both. Without a text it stays.
///
/// # Errors
/// An error for the model if no container or several are meant: the command must not run in the outer one instead.
pub(super) fn resolve_inside(
    engine: &Engine,
    who: &Principal,
    tool: &Tool,
    named: NamedContainer<'_>,
) -> Result<(), ToolError> {
    let outer = named.arguments.get_mut(container_argument(tool));
    // A call that names no container is refused because of that.
    let (Some(inside), Some(Value::String(outer))) = (named.inside, outer) else {
        return Ok(());
    };
    let inner = match &engine.inbox {
        Some(inbox) => {
            let document = inbox.state.document();
            let known = containers(&document.root).map(|(reference, _)| reference.as_str());
            let visible = known.filter(|reference| who.reach().container(reference));
            choose_inside(outer, &inside, visible)
        }
        None => choose_inside(outer, &inside, std::iter::empty()),
    };
    *outer = inner?;
    Ok(())
}

/// Returns the reference to the container inside another one that has this name, or else has this text in its name.
fn choose_inside<'a>(
    outer: &str,
    inside: &str,
    known: impl Iterator<Item = &'a str>,
) -> Result<String, ToolError> {
    let inner = known.filter_map(|reference| {
        let (outside, place) = reference.split_once('@')?;
        let name = outside.strip_prefix("docker:").filter(|_| place == outer)?;
        Some((reference, name))
    });
    let mut inner: Vec<(&str, &str)> = inner.collect();
    inner.sort_unstable_by_key(|(_, name)| *name);
    let exact = inner.iter().find(|(_, name)| *name == inside);
    let mut partial = inner.iter().filter(|(_, name)| name.contains(inside));
    let chosen = exact.or_else(|| partial.next().filter(|_| partial.next().is_none()));
    if let Some((reference, _)) = chosen {
        return Ok((*reference).to_owned());
    }
    if inner.is_empty() {
        let words = format!("'{outer}' has no containers inside that this server can enter");
        let hint = "Nothing was done. Without `subcontainer` and `name` the command runs in the container itself.";
        return Err(ToolError::new(words).hint(hint));
    }
    let names: Vec<&str> = inner.iter().map(|(_, name)| *name).collect();
    let words = format!(
        "not one container inside '{outer}' has '{inside}' in its name; these are inside: {}",
        names.join(", ")
    );
    Err(ToolError::new(words).hint("Nothing was done. Name one of them."))
}

/// Asks the host for the container of a name that the state does not have, and replaces it by its reference. Containers
/// beyond the caller's reach are not among the answers, so their names take the same way as those of no container.
///
/// # Errors
/// As [`resolve_container`].
pub(super) async fn ask_for_container(
    engine: &Engine,
    name_request: NameRequest<'_>,
    tool: &Tool,
    arguments: &mut Map<String, Value>,
) -> Result<(), ToolError> {
    match arguments.get_mut(container_argument(tool)) {
        Some(Value::String(name)) => ask_for_name(engine, name_request, name).await,
        _ => Ok(()),
    }
}

/// Replaces the name of a container in a call's arguments by its reference: as the state has it, or else the host.
///
/// # Errors
/// As [`resolve_container`].
pub(super) async fn resolve_container_now(
    engine: &Engine,
    name_request: NameRequest<'_>,
    tool: &Tool,
    arguments: &mut Map<String, Value>,
) -> Result<(), ToolError> {
    match resolve_container(engine, name_request.who, tool, arguments)? {
        NameLookup::Done => Ok(()),
        NameLookup::Unknown => ask_for_container(engine, name_request, tool, arguments).await,
    }
}

/// Replaces the name of a container in the arguments of a prompt, in the same way.
///
/// # Errors
/// As [`resolve_container`].
pub(super) async fn resolve_prompt_container(
    engine: &Engine,
    name_request: NameRequest<'_>,
    arguments: &mut Map<String, Value>,
) -> Result<(), ToolError> {
    let Some(Value::String(name)) = arguments.get_mut(USUAL_ARGUMENT) else {
        return Ok(());
    };
    match find_in_state(engine, name_request.who, name)? {
        NameLookup::Done => Ok(()),
        NameLookup::Unknown => ask_for_name(engine, name_request, name).await,
    }
}

fn find_in_state(
    engine: &Engine,
    who: &Principal,
    name: &mut String,
) -> Result<NameLookup, ToolError> {
    let Some(inbox) = &engine.inbox else {
        return Ok(NameLookup::Done);
    };
    remove_lxc(name);
    if name.contains(':') {
        return Ok(NameLookup::Done);
    }
    let document = inbox.state.document();
    let known = containers(&document.root).map(|(reference, _)| reference.as_str());
    let visible = known.filter(|reference| who.reach().container(reference));
    replace(name, visible)
}

/// Removes the word of LXC from a reference, which makes it the one that everything else has.
fn remove_lxc(name: &mut String) {
    if let Some(of_lxc) = name.strip_prefix(LXC) {
        *name = of_lxc.to_owned();
    }
}

async fn ask_for_name(
    engine: &Engine,
    name_request: NameRequest<'_>,
    name: &mut String,
) -> Result<(), ToolError> {
    let NameRequest { who, reference } = name_request;
    let question = engine.catalog.containers_within(who.reach(), reference);
    let requester = Requester::Agent(who.agent_id().shared());
    let asked = timeout(QUESTION_TIME, on_behalf_of(requester, question)).await;
    let existing = asked.unwrap_or_default();
    replace(name, existing.iter().map(String::as_str)).map(|_| ())
}

/// Returns the argument of a tool's calls that is a container.
fn container_argument(tool: &Tool) -> &'static str {
    match tool.scope() {
        Scope::Container(argument) | Scope::HostOr(argument) => argument,
        Scope::Stack(_) | Scope::Server | Scope::Host | Scope::Within => USUAL_ARGUMENT,
    }
}

/// Replaces a name by the reference of the only container that has it.
fn replace<'a>(
    name: &mut String,
    known: impl Iterator<Item = &'a str>,
) -> Result<NameLookup, ToolError> {
    let found = choose("containers", name, known)?;
    Ok(match found {
        Some(reference) => {
            *name = reference;
            NameLookup::Done
        }
        None => NameLookup::Unknown,
    })
}

/// Replaces the name of a stack by its reference, in the same way.
fn resolve_stack(
    engine: &Engine,
    who: &Principal,
    argument: &str,
    arguments: &mut Map<String, Value>,
) -> Result<(), ToolError> {
    let (Some(Value::String(name)), Some(inbox)) = (arguments.get_mut(argument), &engine.inbox)
    else {
        return Ok(());
    };
    if name.contains(':') {
        return Ok(());
    }
    let document = inbox.state.document();
    let stacks = whole_stacks(&document.root, |reference| who.reach().container(reference));
    if let Some(reference) = choose("stacks", name, stacks.iter().map(String::as_str))? {
        *name = reference;
    }
    Ok(())
}

/// Returns the containers in the state: the reference and the facts of each.
fn containers(document: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let known = document.pointer(CONTAINERS).and_then(Value::as_object);
    known.into_iter().flatten()
}

/// Returns the references to the stacks of which a caller may see all containers. The others do not exist for it.
fn whole_stacks(document: &Value, is_seen: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let (mut seen, mut hidden) = (BTreeSet::new(), BTreeSet::new());
    for (reference, facts) in containers(document) {
        let stacks = if is_seen(reference) {
            &mut seen
        } else {
            &mut hidden
        };
        stacks.extend(stack_of(reference, facts));
    }
    seen.retain(|stack| !hidden.contains(stack));
    seen
}

/// Returns the references to the containers of a stack that a caller may see as a whole; none if there is no such stack
/// for it. `stack` is its reference, or a name that only one has.
pub(super) fn stack_members<'a>(document: &'a Value, who: &Principal, stack: &str) -> Vec<&'a str> {
    let whole = whole_stacks(document, |reference| who.reach().container(reference));
    let reference = if stack.contains(':') {
        whole.get(stack).cloned()
    } else {
        let named = choose("stacks", stack, whole.iter().map(String::as_str));
        named.unwrap_or_default()
    };
    let Some(stack) = reference else {
        return Vec::new();
    };
    let members = containers(document)
        .filter(|(reference, facts)| stack_of(reference, facts).as_ref() == Some(&stack));
    members.map(|(reference, _)| reference.as_str()).collect()
}

/// Returns the reference to a container's stack.
fn stack_of(reference: &str, facts: &Value) -> Option<String> {
    let (runtime, _) = reference
        .split_once(':')
        .filter(|(_, name)| !name.contains('@'))?;
    let compose = facts.pointer(COMPOSE)?;
    // A single run of a service does not start and stop with the stack.
    let is_one_off = compose.get("one_off").and_then(Value::as_bool) == Some(true);
    let project = compose.get("project")?.as_str()?;
    (!is_one_off).then(|| format!("{runtime}:{project}"))
}

/// Returns the reference that a name stands for; `None` if nothing has it. `what` is the word for several of them.
fn choose<'a>(
    what: &str,
    name: &str,
    known: impl Iterator<Item = &'a str>,
) -> Result<Option<String>, ToolError> {
    let has_name = |reference: &&str| {
        let of_runtime = reference
            .split_once(':')
            .map_or(*reference, |(_, rest)| rest);
        of_runtime.split('@').next() == Some(name)
    };
    let mut found: Vec<&str> = known.filter(has_name).collect();
    found.sort_unstable();
    match found.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some((*one).to_owned())),
        several => {
            let with_runtime = |reference: &&str| {
                let of_lxc = if reference.contains(':') { "" } else { LXC };
                format!("{of_lxc}{reference}")
            };
            let named: Vec<String> = several.iter().map(with_runtime).collect();
            let named = named.join(" and ");
            let words = format!("several {what} have the name '{name}': {named}");
            Err(ToolError::new(words).hint("Nothing was done. Name one of them."))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn chosen(name: &str) -> Result<Option<String>, String> {
        let known = [
            "media",
            "docker:jellyfin",
            "docker:media",
            "podman:web",
            "docker:db@media",
        ];
        choose("containers", name, known.into_iter()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_name_stands_for_the_only_container_that_has_it() {
        assert_eq!(chosen("jellyfin"), Ok(Some("docker:jellyfin".into())));
        assert_eq!(chosen("web"), Ok(Some("podman:web".into())));
        assert_eq!(chosen("db"), Ok(Some("docker:db@media".into())));
        assert_eq!(chosen("none"), Ok(None));
        assert_eq!(chosen("docker"), Ok(None));
    }

    #[test]
    fn a_name_stands_for_a_stack_only_if_all_of_its_containers_are_within_reach() {
        let of = |project: &str| json!({ "engine": { "compose": { "project": project } } });
        let mut once = of("media");
        once["engine"]["compose"]["one_off"] = json!(true);
        let document = json!({ "public": { "packageData": {
            "docker:web": of("media"), "docker:run": once, "docker:db": of("home"), "podman:x": of("home"),
            "docker:far": of("home"), "lxc": {}, "docker:alone": { "engine": {} }, "docker:in@lxc": of("inner"),
        } } });
        let near = ["docker:web", "docker:db"];
        let stacks = whole_stacks(&document, |reference| near.contains(&reference));
        assert_eq!(stacks, BTreeSet::from(["docker:media".to_owned()]));
        let stacks = whole_stacks(&document, |_| true);
        let stacks: Vec<&str> = stacks.iter().map(String::as_str).collect();
        assert_eq!(stacks, ["docker:home", "docker:media", "podman:home"]);
    }

    #[test]
    fn part_of_a_name_chooses_the_container_inside_another_one() {
        let known = [
            "media",
            "docker:web",
            "docker:jellyfin@media",
            "docker:db@media",
            "docker:db-backup@media",
            "docker:jellyfin@other",
        ];
        let chosen = |outer: &str, inside: &str| {
            let chosen = choose_inside(outer, inside, known.into_iter());
            chosen.map_err(|error| error.to_string())
        };
        assert_eq!(chosen("media", "jelly"), Ok("docker:jellyfin@media".into()));
        assert_eq!(
            chosen("media", "db"),
            Ok("docker:db@media".into()),
            "the whole name comes first"
        );
        // The command would run beside the container that was meant.
        let nothing_inside = chosen("web", "jelly").unwrap_err();
        assert!(
            nothing_inside.contains("'web' has no containers inside"),
            "{nothing_inside}"
        );
        for none_or_several in ["x", "d", ""] {
            let refused = chosen("media", none_or_several).unwrap_err();
            assert!(
                refused.contains("these are inside: db, db-backup, jellyfin"),
                "{refused}"
            );
        }
    }

    #[test]
    fn a_name_of_several_containers_is_refused_with_their_references() {
        let refused = chosen("media").unwrap_err();
        assert!(refused.contains("docker:media and lxc:media"), "{refused}");
    }
}
