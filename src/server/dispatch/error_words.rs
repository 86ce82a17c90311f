//! What an agent reads of an error: nothing about tools that it does not have, because a model would call them.

use super::mentions::UnlistedTools;
use gatewren_gate::auth::Principal;
use gatewren_gate::policy::sees;
use gatewren_wire::registry::{Catalog, ToolError};

/// Removes what names a tool that the agent does not have: sentences of the hint, and what follows a semicolon in the
/// message.
pub(super) fn for_agent(catalog: &Catalog, who: &Principal, error: ToolError) -> ToolError {
    let tools = catalog.tools();
    let absent = tools.filter(|tool| !catalog.has(tool) || !sees(who, tool));
    let absent = UnlistedTools::from_names(absent.map(|tool| tool.name()));
    without(&absent, error)
}

fn without(absent: &UnlistedTools<'_>, error: ToolError) -> ToolError {
    let hint = error.hint.map(|hint| absent.removed_from_items(&hint));
    ToolError {
        message: without_clauses(absent, error.message),
        hint: hint.filter(|hint| !hint.is_empty()),
        ..error
    }
}

/// The first clause stays: it says what failed.
fn without_clauses(absent: &UnlistedTools<'_>, message: String) -> String {
    if !absent.are_named_in(&message) {
        return message;
    }
    let mut clauses = message.split("; ");
    let mut kept = clauses.next().unwrap_or_default().to_owned();
    for clause in clauses.filter(|clause| !absent.are_named_in(clause)) {
        kept.push_str("; ");
        kept.push_str(clause);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_agent_does_not_have_is_not_named() {
        let absent = UnlistedTools::from_names(["container_start", "job_list"].into_iter());
        let seen = |message: &str, hint: &str| {
            let error = without(&absent, ToolError::new(message).hint(hint));
            (error.message, error.hint)
        };
        let whole =
            "container 'a' is stopped; start it first (container_start); it was stopped by hand";
        let kept = "container 'a' is stopped; it was stopped by hand";
        assert_eq!(
            seen(whole, "container_start starts it."),
            (kept.to_owned(), None)
        );
        let hint = "Nothing was done. job_list lists the jobs. container_list lists containers.";
        let left = "Nothing was done. container_list lists containers.";
        assert_eq!(
            seen("no job", hint),
            ("no job".to_owned(), Some(left.to_owned()))
        );
        let first = "container_start failed; try again";
        assert_eq!(seen(first, "").0, first);
    }
}
