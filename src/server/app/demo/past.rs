//! The invented past of a demo, in the order of time: calls, changes of containers, requests and notifications.

use serde_json::{Map, Value};

use super::made_up::{
    MadeUpAgent, MadeUpAlert, MadeUpCall, MadeUpCause, MadeUpRequest, MadeUpServer,
};
use super::noise::{below, noise};

const HOUR_MS: u64 = 3_600_000;
const MINUTE_MS: u64 = 60_000;

/// The hours of the heat map.
const WEEK_HOURS: u64 = 7 * 24;

/// How busy an agent is in each hour before the start, from 0 to 9: its owner is awake when the demo starts, and has
/// slept before.
const RHYTHM: [u32; 24] = [
    9, 8, 6, 7, 9, 6, 4, 5, 6, 4, 2, 1, 0, 0, 0, 0, 0, 0, 0, 1, 3, 5, 7, 8,
];

/// Something that happened.
pub struct PastEvent<'a> {
    /// When.
    pub at_ms: u64,
    /// What.
    pub what: PastEventKind<'a>,
}

/// What happened.
pub enum PastEventKind<'a> {
    /// An agent made a call.
    Call(PastCall<'a>),
    /// A container got a status, because of a call or by itself.
    Status {
        /// The container.
        container: &'a str,
        /// The status.
        status: &'a str,
        /// The call.
        call: Option<PastCall<'a>>,
    },
    /// An agent proposed a call.
    Request(&'a MadeUpRequest),
    /// The owner was notified.
    Alert(&'a MadeUpAlert),
}

/// A call.
pub struct PastCall<'a> {
    /// The agent's name.
    pub agent: &'a str,
    /// The tool.
    pub tool: &'a str,
    /// The tool's class.
    pub risk: &'a str,
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// The agent's reason.
    pub reason: Option<&'a str>,
    /// Why it was refused.
    pub refused: Option<&'a str>,
    /// Why it failed.
    pub failed: Option<&'a str>,
    /// How long it took.
    pub duration_ms: u64,
}

/// Returns everything that happened before `now_ms`, oldest first.
pub fn events(made_up: &MadeUpServer, now_ms: u64) -> Vec<PastEvent<'_>> {
    let mut all: Vec<PastEvent<'_>> = Vec::new();
    for agent in &made_up.agents {
        all.extend(calls_of(agent, now_ms));
    }
    for (name, container) in &made_up.containers {
        all.extend(container.events.iter().map(|event| {
            let call = event.cause.as_ref();
            let what = PastEventKind::Status {
                container: name,
                status: &event.status,
                call: call.map(|cause| call_about(name, cause)),
            };
            let at_ms = event.at;
            PastEvent { at_ms, what }
        }));
    }
    all.extend(made_up.requests.iter().map(|request| PastEvent {
        at_ms: request.at,
        what: PastEventKind::Request(request),
    }));
    all.extend(made_up.alerts.iter().map(|alert| PastEvent {
        at_ms: alert.at,
        what: PastEventKind::Alert(alert),
    }));
    all.sort_by_key(|event| event.at_ms);
    all
}

/// The calls of an agent in the last week.
fn calls_of(agent: &MadeUpAgent, now_ms: u64) -> impl Iterator<Item = PastEvent<'_>> {
    let name = agent.name.as_str();
    let kinds: Vec<&MadeUpCall> = agent
        .calls
        .iter()
        .flat_map(|call| std::iter::repeat_n(call, call.share))
        .collect();
    let of_hour = move |hour: u64| {
        let kinds = kinds.clone();
        let begin_ms = now_ms.saturating_sub((hour + 1) * HOUR_MS);
        (0..calls_in_hour(agent, hour)).filter_map(move |number| {
            let position = hour * 100 + number;
            let kind = below(kinds.len() as u64, &format!("{name} kind"), position);
            let call = *kinds.get(usize::try_from(kind).ok()?)?;
            let at_ms = begin_ms + below(HOUR_MS - MINUTE_MS, &format!("{name} time"), position);
            let what = PastEventKind::Call(PastCall {
                agent: name,
                tool: &call.tool,
                risk: &call.risk,
                arguments: call.arguments.clone(),
                reason: None,
                refused: call.refused.as_deref(),
                failed: call.failed.as_deref(),
                duration_ms: 3 + below(240, name, position),
            });
            (at_ms < agent.last && at_ms > agent.created).then_some(PastEvent { at_ms, what })
        })
    };
    (0..WEEK_HOURS).flat_map(of_hour)
}

fn calls_in_hour(agent: &MadeUpAgent, hour: u64) -> u64 {
    let name = agent.name.as_str();
    if agent.never_rests {
        return u64::from(agent.calls_an_hour);
    }
    let today = usize::try_from(hour % 24).unwrap_or(0);
    let busy = RHYTHM.get(today).copied().unwrap_or(0);
    let day = 0.25 + 0.75 * noise(&format!("{name} day"), hour / 24);
    let most = f64::from(agent.calls_an_hour * busy) / 9.0 * day;
    rounded(most * 1.6 * noise(&format!("{name} hour"), hour))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "some calls an hour"
)]
fn rounded(count: f64) -> u64 {
    count.round().max(0.0) as u64
}

fn call_about<'a>(container: &str, cause: &'a MadeUpCause) -> PastCall<'a> {
    PastCall {
        agent: &cause.agent,
        tool: &cause.tool,
        risk: &cause.risk,
        arguments: Map::from_iter([("container".to_owned(), container.into())]),
        reason: Some(&cause.reason),
        refused: None,
        failed: None,
        duration_ms: 2_300,
    }
}
