//! Completions: names from the state that the caller may see.

use std::collections::BTreeMap;

use serde_json::Value;

use gatewren_store::state::{Pointer, StateView, StateViews};
use gatewren_wire::registry::{Completion, CompletionReference, Viewer};

/// The word of LXC before a name.
const LXC: &str = "lxc:";

/// Returns sorted values for an argument of a prompt or a variable of a template that begin with the typed text.
pub fn complete(views: &StateViews, viewer: &Viewer, asked: &Completion) -> Vec<String> {
    let view = views.view_for(&viewer.agent, &viewer.reach);
    let typed = asked.typed.as_str();
    let found = match asked.argument.as_str() {
        "container" => {
            // A URI has the key of the state.
            let in_uri = matches!(asked.reference, CompletionReference::Template(_));
            return matching_containers(&names(&view, "packageData"), typed, in_uri);
        }
        "unit" => names(&view, "units"),
        "change" => vec![view.revision().to_string()],
        "pointer" => return complete_path(&view, typed),
        _ => Vec::new(),
    };
    let fits = |name: &String| name.to_lowercase().starts_with(&typed.to_lowercase());
    found.into_iter().filter(fits).collect()
}

/// Returns the references to containers whose reference or name begins with the typed text. `known` are the keys of the
/// state, which have no runtime for LXC; outside of a URI, its word is added where the name alone is not unique.
fn matching_containers(known: &[String], typed: &str, in_uri: bool) -> Vec<String> {
    let typed = typed.to_lowercase();
    let mut with_name: BTreeMap<&str, usize> = BTreeMap::new();
    for reference in known {
        *with_name.entry(name_of(reference)).or_default() += 1;
    }
    let spelled = |reference: &String| {
        let name = name_of(reference);
        let is_shared = with_name.get(name).is_some_and(|count| *count > 1);
        let is_lxc = name == reference;
        if is_lxc && !in_uri && (is_shared || typed.starts_with(LXC)) {
            format!("{LXC}{reference}")
        } else {
            reference.clone()
        }
    };
    let fits = |reference: &String| {
        let (reference, name) = (reference.to_lowercase(), name_of(reference).to_lowercase());
        reference.starts_with(&typed) || name.starts_with(&typed)
    };
    known.iter().map(spelled).filter(fits).collect()
}

/// Returns the name in a reference, without its runtime and its place.
fn name_of(reference: &str) -> &str {
    let of_runtime = reference
        .split_once(':')
        .map_or(reference, |(_, name)| name);
    of_runtime
        .split_once('@')
        .map_or(of_runtime, |(name, _)| name)
}

/// Returns the names in one part of the public state.
fn names(view: &StateView, part: &str) -> Vec<String> {
    let place = Pointer::root().child("public").child(part);
    view.at(&place, |value, _| keys(value)).unwrap_or_default()
}

fn keys(value: &Value) -> Vec<String> {
    let members = value.as_object().into_iter().flatten();
    members.map(|(name, _)| name.clone()).collect()
}

/// Returns paths one level below the typed one that begin with the typed text.
fn complete_path(view: &StateView, typed: &str) -> Vec<String> {
    let (above, _) = typed.rsplit_once('/').unwrap_or_default();
    let Ok(place) = Pointer::from_uri_path(&format!("/public/{above}").replace("//", "/")) else {
        return Vec::new();
    };
    let place = if above.is_empty() {
        Pointer::root().child("public")
    } else {
        place
    };
    let steps = view.at(&place, |value, _| keys(value)).unwrap_or_default();
    let paths = steps.into_iter().map(|step| {
        let step = step.replace('~', "~0").replace('/', "~1");
        if above.is_empty() {
            step
        } else {
            format!("{above}/{step}")
        }
    });
    paths.filter(|path| path.starts_with(typed)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_are_found_by_reference_and_by_name_and_only_unique_names_have_no_runtime() {
        let known = [
            "docker:Web",
            "docker:db@media",
            "docker:media",
            "media",
            "podman:web",
            "web-2",
        ];
        let known = known.map(str::to_owned);
        let offered = |typed| matching_containers(&known, typed, false);
        assert_eq!(offered("WEB"), ["docker:Web", "podman:web", "web-2"]);
        assert_eq!(offered("media"), ["docker:media", "lxc:media"]);
        assert_eq!(offered("db"), ["docker:db@media"]);
        assert_eq!(offered("docker:m"), ["docker:media"]);
        assert_eq!(offered("lxc:"), ["lxc:media", "lxc:web-2"]);
        assert_eq!(offered("").len(), 6);
        assert_eq!(offered("x"), [""; 0]);
        let in_uri = |typed| matching_containers(&known, typed, true);
        assert_eq!(in_uri("media"), ["docker:media", "media"]);
        assert_eq!(in_uri("lxc:"), [""; 0]);
    }
}
