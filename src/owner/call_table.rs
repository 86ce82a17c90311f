//! Tables of calls: a row each, and those that an agent made one after the other as a run.

use maud::{Markup, html};

use super::container_parts::target;
use super::parts::{name, table, time};
use super::texts;
use gatewren_base::sys::shorten;
use gatewren_gate::owner_actions::CallStatus;
use gatewren_store::vault::AuditCall;

/// The length of an error in a table, in characters; the page of the call shows all that is kept.
const SHOWN_ERROR: usize = 100;

/// The longest pause in a run.
const PAUSE_MS: i64 = 10 * 60_000;

const CALLS: &str = "calls";

const HEADS: [&str; 5] = [
    texts::WHEN,
    texts::AGENT,
    texts::TOOL,
    texts::TARGET,
    texts::OUTCOME,
];

/// Renders a table of calls, a row each.
pub fn calls_table(label: &str, calls: &[AuditCall], run_after: i64) -> Markup {
    let rows = html! { @for call in calls { (call_row(call, run_after)) } };
    html! {
        @if calls.is_empty() { p { (texts::NO_CALLS) } } @else { (table(label, &HEADS, &rows)) }
    }
}

/// Renders a table of calls, the newest first, with a line above each run of several calls.
pub fn runs_table(label: &str, calls: &[AuditCall], run_after: i64) -> Markup {
    let rows = html! {
        @for run in &runs(calls) {
            @if let [newest, .., oldest] = run.as_slice() {
                tr class="run" { th colspan="5" scope="rowgroup" {
                    (agent(newest)) ", " (time(ms(oldest.at_ms))) ", " (run.len()) " " (CALLS)
                } }
            }
            @for call in run { (call_row(call, run_after)) }
        }
    };
    html! {
        @if calls.is_empty() { p { (texts::NO_CALLS) } } @else { (table(label, &HEADS, &rows)) }
    }
}

/// Groups calls by agent, where no pause is longer than [`PAUSE_MS`]. The runs and their calls have the newest first.
fn runs(calls: &[AuditCall]) -> Vec<Vec<&AuditCall>> {
    let mut runs: Vec<Vec<&AuditCall>> = Vec::new();
    for call in calls {
        let of_agent = |run: &&mut Vec<&AuditCall>| {
            let last = run.last();
            last.is_some_and(|last| last.agent == call.agent)
        };
        let run = runs.iter_mut().rev().find(of_agent);
        let is_close = |last: &AuditCall| last.at_ms.saturating_sub(call.at_ms) <= PAUSE_MS;
        match run {
            Some(run) if run.last().is_some_and(|last| is_close(last)) => run.push(call),
            _ => runs.push(vec![call]),
        }
    }
    runs
}

fn call_row(call: &AuditCall, run_after: i64) -> Markup {
    html! {
        tr {
            td { a href=(format!("/owner/activity/{}", call.call)) { (time(ms(call.at_ms))) } }
            td { (agent(call)) }
            td { (name(call.tool.as_deref().unwrap_or("-"))) }
            td { (target(call.target.as_deref().unwrap_or("-"))) }
            td {
                (name(CallStatus::of(call, run_after).word()))
                @if let Some(error) = call.ended.as_ref().and_then(|end| end.error.as_ref()) {
                    " " span class="soft" { (name(&shorten(error, SHOWN_ERROR))) }
                }
            }
        }
    }
}

fn agent(call: &AuditCall) -> Markup {
    let agent = call.agent_name.as_ref().or(call.agent.as_ref());
    name(agent.map_or("-", String::as_str))
}

fn ms(ms: i64) -> u64 {
    u64::try_from(ms).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use gatewren_base::sys::Scratch;
    use gatewren_store::vault::{AuditEntry, AuditReader, CallFilter, Vault};

    use super::*;

    /// Calls of these agents at these minutes, the newest first.
    async fn calls(made: &[(&'static str, i64)]) -> Vec<AuditCall> {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        let vault = Vault::open(&path).unwrap();
        let arguments = serde_json::json!({});
        for (agent, _) in made {
            let entry = AuditEntry {
                agent,
                token: None,
                space: None,
                session: None,
                request: None,
                address: "local",
                tool: "whoami",
                risk: "read",
                arguments: &arguments,
                reason: None,
                target: None,
                mode: None,
                decision: "allow",
                change: None,
            };
            vault.audit().intent(entry).await.unwrap();
        }
        let all = CallFilter {
            limit: 99,
            ..CallFilter::default()
        };
        let mut calls = AuditReader::open(&path).unwrap().calls(&all).unwrap();
        for (call, (_, minute)) in calls.iter_mut().rev().zip(made) {
            call.at_ms = minute * 60_000;
        }
        calls
    }

    #[tokio::test]
    async fn a_run_is_of_one_agent_and_ends_with_a_pause() {
        let calls = calls(&[("a", 1), ("a", 30), ("b", 31), ("a", 32), ("a", 42)]).await;
        let found = runs(&calls);
        let shape: Vec<_> = found
            .iter()
            .map(|run| (run[0].agent.as_deref().unwrap(), run.len()))
            .collect();
        assert_eq!(shape, [("a", 3), ("b", 1), ("a", 1)]);
        let page = runs_table("x", &calls, 0).into_string();
        assert_eq!(page.matches("class=\"run\"").count(), 1, "{page}");
        assert!(page.contains(", 3 calls"), "{page}");
    }
}
