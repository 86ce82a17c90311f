//! Prints a revision for a person.

use gatewren_base::sys::{rfc3339, shorten};
use gatewren_gate::owner_actions::sanitize;
use gatewren_store::state::{PatchOperation, Revision};

/// The maximum number of operations of a revision to print; the others are counted.
const MAX_OPERATIONS: usize = 20;

/// The maximum number of characters of a value; the rest is cut.
const MAX_VALUE: usize = 100;

/// The revision as a line, and each of its operations as a further one.
pub fn revision(revision: &Revision, refused: Option<&str>) -> String {
    let mut lines = vec![format!(
        "{}  {}  {}",
        revision.id,
        rfc3339(revision.at_ms),
        who(&revision.actor, revision.cause.as_deref())
    )];
    lines.extend(refused.map(|why| format!("    changes nothing: {}", sanitize(why))));
    let operations = revision.patch.operations();
    let shown = operations.iter().take(MAX_OPERATIONS);
    lines.extend(shown.map(|operation| format!("    {}", describe_operation(operation))));
    if let Some(more @ 1..) = operations.len().checked_sub(MAX_OPERATIONS) {
        lines.push(format!("    and {more} more"));
    }
    lines.join("\n")
}

/// The author of a revision, with the cause.
pub fn who(actor: &str, cause: Option<&str>) -> String {
    let actor = sanitize(actor);
    cause.map_or_else(
        || actor.clone(),
        |cause| format!("{actor} ({})", sanitize(cause)),
    )
}

fn describe_operation(operation: &PatchOperation) -> String {
    let (verb, value) = match operation {
        PatchOperation::Add { value, .. } => ("add", Some(value)),
        PatchOperation::Remove { .. } => ("remove", None),
        PatchOperation::Replace { value, .. } => ("replace", Some(value)),
        PatchOperation::Test { value, .. } => ("test", Some(value)),
    };
    let path = sanitize(&operation.path().to_string());
    let Some(value) = value else {
        return format!("{verb:<8}{path}");
    };
    let value = shorten(&sanitize(&value.to_string()), MAX_VALUE);
    format!("{verb:<8}{path}  {value}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use gatewren_store::state::Patch;

    use super::*;

    #[test]
    fn what_others_wrote_is_plain_and_short() {
        let operations = (0..25).map(|n| {
            let value = if n == 1 {
                "x".repeat(500)
            } else {
                "\u{9b}1m".to_owned()
            };
            json!({ "op": "add", "path": format!("/public/{n}\u{1b}[2J"), "value": value })
        });
        let patch = Patch::from_value(operations.collect()).unwrap();
        let text = revision(
            &Revision {
                id: 7,
                at_ms: 0,
                actor: "local:\u{1b}]0;x\u{7}".into(),
                cause: Some("a\nb".into()),
                patch,
            },
            Some("\r"),
        );
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text}");
        assert_eq!(text.lines().count(), 1 + 1 + 20 + 1, "{text}");
        assert!(text.starts_with(r"7  1970-01-01T00:00:00.000Z  local:\u{1b}]0;x\u{7} (a\u{a}b)"));
        assert!(
            text.lines().all(|line| line.chars().count() < 150),
            "{text}"
        );
        assert!(text.ends_with("and 5 more"), "{text}");
    }
}
