//! What the activity page is asked for: shortcuts, a field for each part of a call, and the filter that they make.

use maud::{Markup, html};

use super::page_error::PageError;
use super::site::SignedInRequest;
use super::texts;
use gatewren_gate::owner_actions::HumanTimestamp;
use gatewren_store::vault::{Agent, CallFilter};

/// The decisions of gatewren-audit(5).
const DECISIONS: [&str; 9] = [
    "allow",
    "confirm",
    "confirm-owner",
    "confirmed",
    "granted",
    "propose",
    "approved",
    "scheduled",
    "deny",
];

/// The outcomes of gatewren-audit(5), and `unknown` for a call without one.
const OUTCOMES: [&str; 9] = [
    "ok",
    "failed",
    "refused",
    "asked",
    "cancelled",
    "job",
    "killed",
    "lost",
    "unknown",
];

/// The shortcuts: name, field and value; all calls have no field.
const SHORTCUTS: [(&str, &str, &str); 5] = [
    (texts::ALL, "", ""),
    (texts::DENIED, "decision", "deny"),
    (texts::PROPOSED, "decision", "propose"),
    (texts::REFUSALS, "outcome", "refused"),
    (texts::FAILED, "outcome", "failed"),
];

/// All fields of the form, by their names in the query.
const FIELDS: [&str; 7] = [
    "agent", "tool", "target", "decision", "outcome", "since", "until",
];

/// What was asked for.
pub struct ActivityFilter {
    /// The filter of calls.
    pub calls: CallFilter,
    /// Why a value cannot be used; the filter is without it.
    pub wrong: Option<String>,
}

impl ActivityFilter {
    /// Reads the query of a request, for at most `limit` calls.
    pub fn of(asked: &SignedInRequest<'_>, limit: u32) -> Self {
        let mut wrong = None;
        let mut moment = |name: &str| match value(asked, name)?.parse::<HumanTimestamp>() {
            Ok(moment) => Some(moment.0),
            Err(why) => {
                wrong = Some(why);
                None
            }
        };
        let (since_ms, until_ms) = (moment("since"), moment("until"));
        let mut word = |name: &str, known: &[&str]| {
            let word = value(asked, name)?;
            if known.contains(&word.as_str()) {
                return Some(word);
            }
            wrong = Some(format!(
                "{} {name} '{word}'; {} {}",
                texts::NO_SUCH_WORD,
                texts::USE_ONE_OF,
                known.join(", ")
            ));
            None
        };
        let (decision, outcome) = (word("decision", &DECISIONS), word("outcome", &OUTCOMES));
        let calls = CallFilter {
            agent: value(asked, "agent"),
            tool: value(asked, "tool"),
            target: value(asked, "target"),
            decision,
            outcome,
            since_ms,
            until_ms,
            limit,
        };
        Self { calls, wrong }
    }
}

fn value(asked: &SignedInRequest<'_>, field: &str) -> Option<String> {
    let text = asked.visit.query(field)?;
    (!text.trim().is_empty()).then_some(text)
}

/// Renders the shortcuts and the form.
pub fn filter_form(asked: &SignedInRequest<'_>) -> Result<Markup, PageError> {
    let agents = asked.site.vault.agents().list()?;
    let tools = asked.site.tools()?;
    Ok(html! {
        (shortcuts(asked))
        form method="get" action="/owner/activity" {
            div class="search" {
                (agent_field(&agents, &value(asked, "agent").unwrap_or_default()))
                div {
                    (text_input(asked, "tool", texts::TOOL, Some("tools")))
                    datalist id="tools" { @for tool in &tools { option value=(tool.name) {} } }
                }
                div { (text_input(asked, "target", texts::TARGET, None)) }
                (word_field(asked, "decision", texts::DECISION, &DECISIONS))
                (word_field(asked, "outcome", texts::OUTCOME, &OUTCOMES))
                div { (date_input(asked, "since", texts::SINCE)) }
                div { (date_input(asked, "until", texts::BEFORE)) }
                button { (texts::SEARCH) }
            }
        }
    })
}

fn shortcuts(asked: &SignedInRequest<'_>) -> Markup {
    let set: Vec<_> = FIELDS
        .iter()
        .filter_map(|field| Some((*field, value(asked, field)?)))
        .collect();
    let is_current = |field: &str, word: &str| match set.as_slice() {
        [] => field.is_empty(),
        [(name, value)] => *name == field && value == word,
        _ => false,
    };
    html! {
        div class="row shortcuts" role="group" aria-label=(texts::SHORTCUTS) {
            @for (name, field, word) in SHORTCUTS {
                @let query = if field.is_empty() { String::new() } else { format!("?{field}={word}") };
                a class="tag" href=(format!("/owner/activity{query}"))
                    aria-current=[is_current(field, word).then_some("true")] { (name) }
            }
        }
    }
}

/// Lists the agents by name; those that were revoked come last. The query may name one by its id or its name.
fn agent_field(agents: &[Agent], wanted: &str) -> Markup {
    let mut agents: Vec<&Agent> = agents.iter().collect();
    agents.sort_by_key(|agent| (agent.revoked_ms.is_some(), agent.name.clone()));
    let is_wanted = |agent: &Agent| agent.id.as_str() == wanted || agent.name == wanted;
    let known = agents.iter().position(|agent| is_wanted(agent));
    html! {
        div {
            label for="agent" { (texts::AGENT) }
            select id="agent" name="agent" {
                option value="" { (texts::ANY) }
                @if known.is_none() && !wanted.is_empty() { option value=(wanted) selected { (wanted) } }
                @for (at, agent) in agents.iter().enumerate() {
                    option value=(agent.id) selected[known == Some(at)] {
                        (agent.name) @if agent.revoked_ms.is_some() { ", " (texts::REVOKED) }
                    }
                }
            }
        }
    }
}

fn word_field(asked: &SignedInRequest<'_>, id: &str, label: &str, words: &[&str]) -> Markup {
    let wanted = value(asked, id).unwrap_or_default();
    html! {
        div {
            label for=(id) { (label) }
            select id=(id) name=(id) {
                option value="" { (texts::ANY) }
                @for word in words { option value=(word) selected[wanted == **word] { (word) } }
            }
        }
    }
}

fn text_input(asked: &SignedInRequest<'_>, id: &str, label: &str, list: Option<&str>) -> Markup {
    let value = asked.visit.query(id).unwrap_or_default();
    html! {
        label for=(id) { (label) }
        input type="text" id=(id) name=(id) value=(value) list=[list] autocomplete="off";
    }
}

/// Renders a field for a day. The query may also have a time, or how long ago, which no such field can show.
fn date_input(asked: &SignedInRequest<'_>, id: &str, label: &str) -> Markup {
    let value = asked.visit.query(id).unwrap_or_default();
    let is_day = value.is_empty() || value.len() == "2026-07-28".len();
    html! {
        label for=(id) { (label) }
        input type=(if is_day { "date" } else { "text" }) id=(id) name=(id) value=(value) autocomplete="off";
    }
}
