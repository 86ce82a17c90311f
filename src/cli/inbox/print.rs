//! How a change is written for its owner: nothing that an agent wrote may move the cursor or pass for our words.

use serde_json::{Value, json};

use super::desk::Desk;
use crate::backends::neutralise;
use crate::deeds::{Movement, exact_arguments, plain, result_text};
use crate::sys::rfc3339;
use crate::telemetry::redact;
use crate::vault::{Change, ChangeStatus, hex};

/// Characters of the arguments in a line; the rest is cut.
const IN_A_LINE: usize = 80;

/// Bytes of a result on a page; the rest is cut, and `--json` has all of it.
const ON_A_PAGE: usize = 4 << 10;

/// What the cells of a line are.
pub const HEAD: [&str; 7] = [
    "id",
    "status",
    "proposed",
    "agent",
    "tool",
    "about",
    "arguments",
];

/// A change in a line.
pub fn cells(desk: &Desk, change: &Change) -> [String; 7] {
    let moved = match (change.moved, change.status) {
        (Some(_), ChangeStatus::Pending) => " (its target has moved)",
        _ => "",
    };
    let arguments = cut(&plain(&redacted(change).to_string()), IN_A_LINE);
    [
        change.id.clone(),
        change.status.as_str().to_owned(),
        rfc3339(change.created_ms),
        plain(desk.name(&change.agent)),
        plain(&change.tool),
        plain(change.target.as_deref().unwrap_or("-")),
        format!("{arguments}{moved}"),
    ]
}

/// A change in brief, as JSON.
pub fn brief(desk: &Desk, change: &Change) -> Value {
    let mut value = common(desk, change);
    set(&mut value, "arguments", redacted(change));
    value
}

/// All of a change, as JSON.
pub fn whole(desk: &Desk, change: &Change, movement: &Movement) -> Value {
    let mut value = common(desk, change);
    let parsed = |text: &str| serde_json::from_str(text).unwrap_or(Value::Null);
    set(&mut value, "arguments", parsed(&change.arguments));
    set(
        &mut value,
        "arguments_are_as_proposed",
        json!(change.proven_arguments().is_some()),
    );
    set(&mut value, "rests_on", json!(change.rests_on));
    set(&mut value, "moved_since", movement.to_json());
    set(
        &mut value,
        "result",
        change.result.as_deref().map_or(Value::Null, parsed),
    );
    value
}

/// A change on a page.
pub fn page(desk: &Desk, change: &Change, movement: &Movement) -> String {
    let mut rows = vec![
        row("change", &change.id),
        row("status", &standing(change)),
        row(
            "agent",
            &format!(
                "{} ({}), space {}",
                desk.name(&change.agent),
                change.agent,
                change.space
            ),
        ),
        row("tool", &change.tool),
        row("about", change.target.as_deref().unwrap_or("-")),
        format!("arguments\n{}", indented(&exact_arguments(change))),
        row("sha256", &hex(&change.arguments_sha256)),
    ];
    if change.proven_arguments().is_none() {
        rows.push(row(
            "warning",
            "the arguments are not those that were proposed: it cannot be approved",
        ));
    }
    rows.extend(
        change
            .reason
            .as_deref()
            .map(|reason| format!("reason, in the agent's words\n{}", quoted(reason))),
    );
    rows.push(row("state", &rests(change, movement)));
    rows.push(row("proposed", &rfc3339(change.created_ms)));
    if let (Some(by), Some(at)) = (&change.decided_by, change.decided_ms) {
        rows.push(row("decided", &format!("{} by {by}", rfc3339(at))));
    }
    rows.extend(change.note.as_deref().map(|note| row("note", note)));
    rows.extend(change.words.as_deref().map(|words| row("outcome", words)));
    rows.extend(change.result.as_deref().map(|result| {
        format!(
            "result, as the tool answered\n{}",
            quoted(&cut(&result_text(result), ON_A_PAGE))
        )
    }));
    rows.extend(audited(change));
    rows.join("\n")
}

/// What came of a change, in a sentence.
pub fn said(desk: &Desk, change: &Change) -> String {
    let about = change
        .target
        .as_deref()
        .map_or_else(String::new, |target| format!(" {target}"));
    let words = change
        .words
        .as_deref()
        .map_or_else(String::new, |words| format!(": {words}"));
    plain(&format!(
        "{} {}: {}{about} for {}{words}",
        change.id,
        change.status.as_str(),
        change.tool,
        desk.name(&change.agent)
    ))
}

/// What both JSON forms have.
pub fn common(desk: &Desk, change: &Change) -> Value {
    let time = |ms: Option<u64>| ms.map(rfc3339);
    json!({
        "id": change.id,
        "status": change.status.as_str(),
        "agent": change.agent,
        "agent_name": desk.name(&change.agent),
        "space": change.space,
        "tool": change.tool,
        "target": change.target,
        "arguments_sha256": hex(&change.arguments_sha256),
        "reason": change.reason,
        "revision": change.revision,
        "moved": change.moved,
        "created": rfc3339(change.created_ms),
        "expires": rfc3339(change.expires_ms),
        "updated": rfc3339(change.updated_ms),
        "decided_by": change.decided_by,
        "decided": time(change.decided_ms),
        "note": change.note,
        "words": change.words,
        "proposed_in": change.proposed_in,
        "ran_in": change.ran_in,
    })
}

fn set(value: &mut Value, name: &str, member: Value) {
    if let Some(object) = value.as_object_mut() {
        object.insert(name.to_owned(), member);
    }
}

fn standing(change: &Change) -> String {
    match change.status {
        ChangeStatus::Pending | ChangeStatus::Approved => {
            format!(
                "{}, until {}",
                change.status.as_str(),
                rfc3339(change.expires_ms)
            )
        }
        status => format!("{}, since {}", status.as_str(), rfc3339(change.updated_ms)),
    }
}

fn rests(change: &Change, movement: &Movement) -> String {
    let revision = change.revision;
    match movement {
        Movement::RestsOnNothing => {
            format!(
                "revision {revision}; what this does may be about anything, so nothing is watched for it"
            )
        }
        Movement::None => format!("revision {revision}; what it is about has not moved since"),
        Movement::At(at, by) => format!(
            "revision {revision}; what it is about HAS MOVED since, at revision {at} by {by}"
        ),
        Movement::Unknown => {
            format!("revision {revision}; whether what it is about has moved is not known")
        }
    }
}

fn audited(change: &Change) -> Vec<String> {
    let ids = [("proposal", &change.proposed_in), ("run", &change.ran_in)];
    let rows = ids.into_iter().filter_map(|(what, id)| {
        let id = id.as_ref()?;
        Some(row("audit", &format!("{id} ({what})")))
    });
    rows.collect()
}

fn redacted(change: &Change) -> Value {
    serde_json::from_str(&change.arguments).map_or(Value::Null, |arguments| redact(&arguments))
}

fn row(name: &str, value: &str) -> String {
    format!("{name:<9} {}", plain(value))
}

/// Lines that cannot be taken for rows.
fn indented(text: &str) -> String {
    let text = neutralise(text);
    let lines: Vec<String> = text.lines().map(|line| format!("    {line}")).collect();
    lines.join("\n")
}

/// The same of words that somebody else wrote.
fn quoted(text: &str) -> String {
    let text = neutralise(text);
    let lines: Vec<String> = text.lines().map(|line| format!("  > {line}")).collect();
    lines.join("\n")
}

fn cut(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}
