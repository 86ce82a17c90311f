//! Prints a change for the owner exactly as it would run. Text of an agent cannot move the cursor or look like
//! ours.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::super::console::moment::moment;
use super::super::console::table::table;
use super::context::{CHANGE, InboxContext};
use gatewren_base::sys::{exact_line, exact_lines, rfc3339, shorten};
use gatewren_gate::owner_actions::{
    ShownArgument, Staleness, change_arguments, result_text, schedule_words,
};
use gatewren_host::backends::neutralise;
use gatewren_store::vault::{Change, ChangeStatus, hex};
use gatewren_tools::watches::watch_words;

/// The maximum number of characters of arguments in a line of a list. Longer arguments are left out completely:
/// the beginning of a command looks like a whole one.
const IN_A_LINE: usize = 80;

/// The maximum number of characters of a result on a page; the rest is cut, and `--json` has all of it.
const ON_A_PAGE: usize = 4 << 10;

/// The column headings of a list.
pub const HEAD: [&str; 7] = [
    "id",
    "status",
    "proposed",
    "agent",
    "tool",
    "about",
    "arguments",
];

/// A change as a row.
pub fn cells(inbox: &InboxContext, change: &Change) -> [String; 7] {
    let moved = match (change.moved, change.status) {
        (Some(_), ChangeStatus::Pending) => " (its target has changed)",
        _ => "",
    };
    let arguments = arguments_or_hint(change, IN_A_LINE, &change.id);
    [
        change.id.clone(),
        change.status.as_str().to_owned(),
        rfc3339(change.created_ms),
        exact_line(inbox.name(&change.agent)),
        exact_line(&change.tool),
        exact_line(change.target.as_deref().unwrap_or("-")),
        format!("{arguments}{moved}"),
    ]
}

/// The changes on a terminal with so many columns: a row for each, and below it its target with all arguments, or
/// without any.
pub fn list_on_terminal(inbox: &InboxContext, changes: &[Change], columns: usize) -> String {
    let [id, status, proposed, agent, tool, ..] = HEAD;
    let mut rows = vec![[id, status, proposed, agent, tool].map(str::to_owned)];
    rows.extend(changes.iter().map(|change| {
        [
            CHANGE.shown(&change.id),
            change.status.as_str().to_owned(),
            moment(change.created_ms),
            exact_line(inbox.name(&change.agent)),
            exact_line(&change.tool),
        ]
    }));
    let table = table(&rows);
    let mut lines = table.lines();
    let mut text = lines.next().unwrap_or_default().to_owned();
    for (line, change) in lines.zip(changes) {
        let (about, room) = about_on_terminal(change, columns);
        let arguments = arguments_or_hint(change, room, &CHANGE.shown(&change.id));
        let _ = write!(text, "\n{line}\n{about}{arguments}");
        if change.moved.is_some() && change.status == ChangeStatus::Pending {
            text.push_str("\n    Its target has changed.");
        }
    }
    text
}

/// The beginning of the line below a change, and the characters that it leaves for the arguments.
fn about_on_terminal(change: &Change, columns: usize) -> (String, usize) {
    let about = change.target.as_deref();
    let about = about.map_or_else(String::new, |about| format!("{}: ", exact_line(about)));
    let about = format!("    {about}");
    let room = columns.saturating_sub(about.chars().count());
    (about, room)
}

/// The arguments of a change, or how to see them if they are longer than `most`.
fn arguments_or_hint(change: &Change, most: usize, id: &str) -> String {
    arguments_in_a_line(change, most).unwrap_or_else(|| {
        let characters = change.arguments.chars().count();
        format!("({characters} characters: gatewren inbox show {id})")
    })
}

/// Whether a list shows all arguments of a change; `columns` if it is on a terminal.
pub fn is_whole_in_list(change: &Change, columns: Option<usize>) -> bool {
    let most = columns.map_or(IN_A_LINE, |columns| about_on_terminal(change, columns).1);
    arguments_in_a_line(change, most).is_some()
}

/// All arguments of a change on one line; `None` if they are longer than `most`.
fn arguments_in_a_line(change: &Change, most: usize) -> Option<String> {
    let line = exact_line(&change.arguments);
    (line.chars().count() <= most).then_some(line)
}

/// A change in a list, as JSON; `as_of` is the digest of all pending changes of its agent.
pub fn brief(inbox: &InboxContext, change: &Change, as_of: Option<&str>) -> Value {
    let mut value = common(inbox, change);
    set(&mut value, "arguments", parse_json(&change.arguments));
    if let Some(digest) = as_of {
        set(&mut value, "as_of", json!(digest));
    }
    value
}

/// The watch that a change would create, in words.
fn watch_of(change: &Change) -> Option<String> {
    watch_words(&change.tool, &change.proven_arguments()?)
}

/// A change in full, as JSON.
pub fn whole(inbox: &InboxContext, change: &Change, staleness: &Staleness) -> Value {
    let mut value = common(inbox, change);
    set(&mut value, "arguments", parse_json(&change.arguments));
    set(
        &mut value,
        "arguments_are_as_proposed",
        json!(change.proven_arguments().is_some()),
    );
    set(&mut value, "schedule", json!(schedule_words(change)));
    set(&mut value, "watch", json!(watch_of(change)));
    set(&mut value, "rests_on", json!(change.rests_on));
    set(&mut value, "moved_since", staleness.to_json());
    set(
        &mut value,
        "result",
        change.result.as_deref().map_or(Value::Null, parse_json),
    );
    value
}

/// A change in full, as text.
pub fn page(inbox: &InboxContext, change: &Change, staleness: &Staleness) -> String {
    let mut rows = vec![
        row("change", &change.id),
        row("status", &status_text(change)),
        row(
            "agent",
            &format!(
                "{} ({}), space {}",
                inbox.name(&change.agent),
                change.agent,
                change.space
            ),
        ),
        row("tool", &change.tool),
        row("about", change.target.as_deref().unwrap_or("-")),
    ];
    rows.extend(schedule_words(change).map(|words| row("schedule", &words)));
    rows.extend(watch_of(change).map(|words| row("watch", &words)));
    rows.extend(arguments(change));
    rows.push(row("sha256", &hex(&change.arguments_sha256)));
    if change.proven_arguments().is_none() {
        rows.push(row(
            "warning",
            "the arguments differ from the proposal: it cannot be approved",
        ));
    }
    rows.extend(change.reason.as_deref().map(|reason| {
        format!(
            "reason, in the agent's words\n{}",
            quote_text(&exact_lines(reason))
        )
    }));
    rows.push(row("state", &rests(change, staleness)));
    rows.push(row("proposed", &rfc3339(change.created_ms)));
    if let (Some(by), Some(at)) = (&change.decided_by, change.decided_ms) {
        rows.push(row("decided", &format!("{} by {by}", rfc3339(at))));
    }
    rows.extend(change.note.as_deref().map(|note| row("note", note)));
    rows.extend(change.words.as_deref().map(|words| {
        let (first, more) = first_line(words);
        row("outcome", first) + &more
    }));
    rows.extend(change.result.as_deref().map(|result| {
        format!(
            "result, as the tool returned it\n{}",
            quote_text(&neutralise(&shorten(&result_text(result), ON_A_PAGE)))
        )
    }));
    rows.extend(audit_lines(change));
    rows.join("\n")
}

/// The result of a change, in a sentence, with `note` behind it. Further lines of the result follow.
pub fn result_sentence(inbox: &InboxContext, change: &Change, note: &str) -> String {
    let about = change
        .target
        .as_deref()
        .map_or_else(String::new, |target| format!(" {target}"));
    let (first, more) = first_line(change.words.as_deref().unwrap_or_default());
    let words = if first.is_empty() {
        String::new()
    } else {
        format!(": {first}")
    };
    let sentence = exact_line(&format!(
        "{} {}: {}{about} for {}{words}{note}",
        change.id,
        change.status.as_str(),
        change.tool,
        inbox.name(&change.agent)
    ));
    sentence + &more
}

/// Returns the first line of a text, and the others as lines that are to follow it, each with its line feed.
fn first_line(text: &str) -> (&str, String) {
    match text.split_once('\n') {
        Some((first, more)) => (first, format!("\n{}", quote_text(&exact_lines(more)))),
        None => (text, String::new()),
    }
}

/// The fields that both JSON forms have.
pub fn common(inbox: &InboxContext, change: &Change) -> Value {
    let time = |ms: Option<u64>| ms.map(rfc3339);
    json!({
        "id": change.id,
        "status": change.status.as_str(),
        "agent": change.agent,
        "agent_name": inbox.name(&change.agent),
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

fn parse_json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(Value::Null)
}

fn set(value: &mut Value, name: &str, member: Value) {
    if let Some(object) = value.as_object_mut() {
        object.insert(name.to_owned(), member);
    }
}

fn status_text(change: &Change) -> String {
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

fn rests(change: &Change, staleness: &Staleness) -> String {
    let revision = change.revision;
    match staleness {
        Staleness::RestsOnNothing => {
            format!("revision {revision}; this can affect anything, so no target is watched")
        }
        Staleness::None => format!("revision {revision}; its target has not changed since"),
        Staleness::At(at, by) => {
            format!("revision {revision}; its target HAS CHANGED since, at revision {at} by {by}")
        }
        Staleness::Unknown => {
            format!("revision {revision}; whether its target has changed since is unknown")
        }
    }
}

fn audit_lines(change: &Change) -> Vec<String> {
    let ids = [("proposal", &change.proposed_in), ("run", &change.ran_in)];
    let rows = ids.into_iter().filter_map(|(what, id)| {
        let id = id.as_ref()?;
        Some(row("audit", &format!("{id} ({what})")))
    });
    rows.collect()
}

/// Each argument: its name and its notes on one line, its whole value on separate lines.
fn arguments(change: &Change) -> Vec<String> {
    let shown = change_arguments(change);
    if shown.is_empty() {
        return vec![row("arguments", "none")];
    }
    let one = |argument: &ShownArgument| {
        let kind = if argument.is_text { "text" } else { "JSON" };
        let notes = argument.notes.iter().map(|note| format!("\n  ({note})"));
        let notes: String = notes.collect();
        format!(
            "argument  {} ({kind}){notes}\n{}",
            argument.name,
            indent_text(&argument.text)
        )
    };
    shown.iter().map(one).collect()
}

fn row(name: &str, value: &str) -> String {
    format!("{name:<9} {}", exact_line(value))
}

/// Indents lines so that they cannot look like rows. An empty text, and a line feed at the end of one, are lines
/// too.
fn indent_text(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(|line| format!("    {line}")).collect();
    lines.join("\n")
}

/// The same for text that an agent or a tool wrote.
fn quote_text(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("  > {line}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_several_lines_is_shown_as_lines() {
        assert_eq!(first_line("stopped"), ("stopped", String::new()));
        let text = "stopped\nstart it\u{1b}\nthen call again";
        let more = "\n  > start it\\u{1b}\n  > then call again".to_owned();
        assert_eq!(first_line(text), ("stopped", more));
    }
}
