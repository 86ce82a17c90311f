//! Prints a schedule for the owner. Its arguments and errors are text of agents and tools, which may not move the cursor.

use serde_json::{Value, json};

use super::super::console::moment::{moment, moment_of};
use super::super::console::selected::SelectedKind;
use super::super::inbox::InboxContext;
use gatewren_base::sys::{Calendar, exact_line, now_ms, rfc3339};
use gatewren_store::vault::{Schedule, ScheduleRun};

/// How a schedule is selected.
pub const SCHEDULE: SelectedKind = SelectedKind {
    tag: "sch_",
    noun: "schedule",
    list: "schedule list",
};

/// The column headings of a list.
pub const HEAD: [&str; 8] = [
    "id", "status", "name", "agent", "tool", "about", "next", "last run",
];

/// The number of upcoming times.
const UPCOMING: usize = 3;

/// A schedule as a row.
pub fn cells(context: &InboxContext, one: &Schedule, runs: &[ScheduleRun]) -> [String; 8] {
    let next = next_times(one).into_iter().next();
    let last = runs.first().map(|run| {
        let outcome = run.outcome.as_deref().unwrap_or("running");
        format!("{} {outcome}", moment(run.began_ms))
    });
    [
        SCHEDULE.shown(&one.id),
        status(one).to_owned(),
        exact_line(&one.name),
        exact_line(context.name(&one.agent)),
        exact_line(&one.tool),
        exact_line(one.target.as_deref().unwrap_or("-")),
        next.map_or_else(|| "-".to_owned(), |next| moment_of(&next)),
        last.unwrap_or_else(|| "-".to_owned()),
    ]
}

/// A schedule as JSON.
pub fn as_json(context: &InboxContext, one: &Schedule, runs: &[ScheduleRun]) -> Value {
    json!({
        "id": one.id,
        "name": one.name,
        "status": status(one),
        "why": one.ended,
        "agent": one.agent,
        "agent_name": context.name(&one.agent),
        "space": one.space,
        "tool": one.tool,
        "target": one.target,
        "arguments": serde_json::from_str::<Value>(&one.arguments).unwrap_or_default(),
        "at": one.at,
        "times": words(one),
        "catch_up": one.catch_up,
        "next": next_times(one),
        "failing": one.failing,
        "approval": one.approval,
        "created": rfc3339(one.created_ms),
        "runs": runs.iter().map(run_as_json).collect::<Vec<_>>(),
    })
}

fn run_as_json(run: &ScheduleRun) -> Value {
    json!({
        "due": rfc3339(run.due_ms),
        "began": rfc3339(run.began_ms),
        "ended": run.ended_ms.map(rfc3339),
        "outcome": run.outcome.as_deref().unwrap_or("running"),
        "caught_up": run.caught_up,
        "error": run.words,
        "ran_in": run.ran_in,
    })
}

/// A schedule in full, as text.
pub fn page(context: &InboxContext, one: &Schedule, runs: &[ScheduleRun]) -> String {
    let status = match &one.ended {
        Some(why) => format!("{}: {why}", status(one)),
        None => status(one).to_owned(),
    };
    let agent = format!(
        "{} ({}), space {}",
        context.name(&one.agent),
        one.agent,
        one.space
    );
    let approval = one.approval.as_deref();
    let approval = approval.map_or_else(
        || "none: the policy needed none".to_owned(),
        |change| format!("change {change}"),
    );
    let mut rows = vec![
        row("schedule", &one.id),
        row("name", &one.name),
        row("status", &status),
        row("agent", &agent),
        row("call", &format!("{} {}", one.tool, one.arguments)),
        row("at", &one.at),
        row("times", &words(one)),
        row("next", &next_times(one).join(", ")),
        row("approval", &approval),
    ];
    rows.extend(runs.iter().map(|run| row("run", &run_line(run))));
    rows.join("\n")
}

fn run_line(run: &ScheduleRun) -> String {
    let outcome = run.outcome.as_deref().unwrap_or("running");
    let caught_up = if run.caught_up {
        format!(", made up for {}", rfc3339(run.due_ms))
    } else {
        String::new()
    };
    let took = run.ended_ms.map(|ended| {
        let seconds = ended.saturating_sub(run.began_ms) / 1_000;
        format!(" after {seconds} s")
    });
    let words = run.words.as_deref();
    let words = words.map_or_else(String::new, |words| format!(": {words}"));
    format!(
        "{} {outcome}{}{caught_up}{words}",
        rfc3339(run.began_ms),
        took.unwrap_or_default()
    )
}

fn status(one: &Schedule) -> &'static str {
    match (&one.ended, one.paused) {
        (Some(_), _) => "ended",
        (None, true) => "paused",
        (None, false) if next_times(one).is_empty() => "done",
        (None, false) if one.failing => "failing",
        (None, false) => "active",
    }
}

fn calendar(one: &Schedule) -> Option<Calendar> {
    one.at.parse().ok()
}

fn words(one: &Schedule) -> String {
    calendar(one).map_or_else(String::new, |calendar| calendar.words())
}

fn next_times(one: &Schedule) -> Vec<String> {
    let calendar = calendar(one).filter(|_| one.is_active());
    let times = calendar.map_or_else(Vec::new, |calendar| calendar.upcoming(now_ms(), UPCOMING));
    times.into_iter().map(rfc3339).collect()
}

fn row(name: &str, value: &str) -> String {
    format!("{name:<9} {}", exact_line(value))
}
