//! Completions: names from the state that the caller may see.

use serde_json::Value;

use gatewren_store::state::{Pointer, StateView, StateViews};
use gatewren_wire::registry::{Completion, Viewer};

/// Returns sorted values for an argument of a prompt or a variable of a template that begin with the typed text.
pub fn complete(views: &StateViews, viewer: &Viewer, asked: &Completion) -> Vec<String> {
    let view = views.view_for(&viewer.agent, &viewer.reach);
    let typed = asked.typed.as_str();
    let found = match asked.argument.as_str() {
        "container" => names(&view, "packageData"),
        "unit" => names(&view, "units"),
        "change" => vec![view.revision().to_string()],
        "pointer" => return complete_path(&view, typed),
        _ => Vec::new(),
    };
    let fits = |name: &String| name.to_lowercase().starts_with(&typed.to_lowercase());
    found.into_iter().filter(fits).collect()
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
