//! The page of one agent: its permissions, its calls, and the form that changes it.

use hyper::Response;
use maud::{Markup, html};

use super::agent_cards::{hours_of_week, path, policy_tag};
use super::agent_form::{AgentFormValues, fields};
use super::agent_texts;
use super::agent_token::{NewToken, first_call, token_page};
use super::call_table::calls_table;
use super::confirm::confirm;
use super::header::Tab;
use super::heat_map::HeatMap;
use super::page_error::PageError;
use super::parts::{name, notice, proof, time, time_or};
use super::site::{PageResult, SignedInRequest, redirect_with_notice};
use super::texts;
use gatewren_base::config::Policy;
use gatewren_base::sys::{LocalZone, now_ms};
use gatewren_gate::auth::{AuthError, policy_of};
use gatewren_gate::http::ResponseBody;
use gatewren_gate::owner_actions;
use gatewren_gate::owner_actions::{
    PolicyPreview, change_lines, expires_soon, gives_more_access, token_status,
};
use gatewren_store::vault::{Agent, CallFilter};

/// The number of its calls that are listed; the audit has all.
const CALLS: u32 = 10;

/// Renders the page.
pub async fn page(asked: &SignedInRequest<'_>, id: &str) -> PageResult {
    let agent = find_agent(asked, id)?;
    let wanted = policy_of(&agent).map(|policy| AgentFormValues::now(&agent, &policy));
    let mut hours = hours_of_week(asked.site).await?;
    hours.retain(|hour| hour.agent == agent.id);
    let week = HeatMap::of(hours.iter(), &LocalZone::of_host());
    let shown = ShownAgent {
        agent: &agent,
        after: &agent,
        week: Some(&week),
        wrong: None,
    };
    render_agent(asked, &shown, wanted.ok().as_ref())
}

/// An agent as its page shows it.
struct ShownAgent<'a> {
    agent: &'a Agent,
    /// The agent with the values of the form, if they are previewed.
    after: &'a Agent,
    /// Its calls of the last week; not beside a form that was sent.
    week: Option<&'a HeatMap>,
    /// Why the values of the form cannot be saved.
    wrong: Option<&'a str>,
}

fn find_agent(asked: &SignedInRequest<'_>, id: &str) -> Result<Agent, PageError> {
    let agents = asked.site.vault.agents().list()?;
    agents
        .into_iter()
        .find(|agent| agent.id == id)
        .ok_or(PageError::Absent)
}

/// Runs the action that the form requests.
pub async fn change(asked: &SignedInRequest<'_>, id: &str) -> PageResult {
    let before = find_agent(asked, id)?;
    if before.revoked_ms.is_some() {
        return Err(PageError::Refused(texts::REVOKED_ALREADY.to_owned()));
    }
    let owner = asked.owner_context();
    match asked.visit.field("do").as_deref() {
        Some("revoke") if asked.visit.field("sure").is_none() => revoke_question(asked, &before),
        Some("revoke") => {
            owner_actions::revoke(&owner, &before).await?;
            Ok(redirect_with_notice("/owner/agents", "revoked"))
        }
        Some("rotate") => {
            if let Some(page) = confirm(asked).await? {
                return Ok(page);
            }
            let token = owner_actions::rotate(&owner, &before).await?;
            let new = NewToken {
                agent: &before,
                token: token.expose(),
                words: texts::TOKEN_ROTATED,
                client: "",
            };
            token_page(asked, &new)
        }
        Some(word @ ("preview" | "save")) => edit(asked, &before, word == "save").await,
        _ => Err(PageError::Refused(texts::NO_SUCH_ACTION.to_owned())),
    }
}

async fn edit(
    asked: &SignedInRequest<'_>,
    before: &Agent,
    save: bool,
) -> Result<Response<ResponseBody>, PageError> {
    let wanted = AgentFormValues::of(asked.visit);
    // An unreadable policy rejects every call: the form's values replace it.
    let policy = policy_of(before).unwrap_or_else(|_| Policy::from(before.preset));
    let refuse = |words: &str| {
        let shown = ShownAgent {
            agent: before,
            after: before,
            week: None,
            wrong: Some(words),
        };
        render_agent(asked, &shown, Some(&wanted))
    };
    let after = match wanted.changed(before, &policy, &asked.site.spaces()) {
        Ok(after) => after,
        Err(words) => return refuse(&words),
    };
    if !save {
        let shown = ShownAgent {
            agent: before,
            after: &after,
            week: None,
            wrong: None,
        };
        return render_agent(asked, &shown, Some(&wanted));
    }
    if gives_more_access(before, &after)
        && let Some(page) = confirm(asked).await?
    {
        return Ok(page);
    }
    let changes = match owner_actions::edit(&asked.owner_context(), before, &after).await {
        Ok(changes) => changes,
        Err(words) => return refuse(&words),
    };
    let notice_name = if changes.is_empty() {
        "unchanged"
    } else {
        "edited"
    };
    Ok(redirect_with_notice(
        &format!("/owner/agents/{}", before.id),
        notice_name,
    ))
}

/// Renders an agent, with a preview of its changed permissions if they differ.
fn render_agent(
    asked: &SignedInRequest<'_>,
    shown: &ShownAgent<'_>,
    wanted: Option<&AgentFormValues>,
) -> PageResult {
    let ShownAgent {
        agent, after, week, ..
    } = *shown;
    let site = asked.site;
    let spaces = site.spaces();
    let offered = site.tools()?;
    let is_preview = agent != after;
    let preview =
        policy_of(after).map(|policy| PolicyPreview::of(after, policy, &spaces, &offered));
    let changes = is_preview.then(|| owner_actions::changes_between(agent, after));
    let content = html! {
        h1 { (name(&agent.name)) " " (policy_tag(agent)) }
        (asked.render_notice())
        @if let Some(words) = shown.wrong { (notice(words, true)) }
        @if let Some(changes) = &changes {
            section class="notice" {
                h2 { (texts::PREVIEW) }
                @if changes.is_empty() { p { (texts::NOTHING_DIFFERS) } }
                ul { @for line in change_lines(changes) { li { (name(line.trim())) } } }
            }
        }
        @if agent.revoked_ms.is_none() && agent.last_used_ms.is_none() { (first_call(agent)) }
        section { (facts(agent, token_status(agent, &spaces).refused.as_ref())) }
        @if let Some(week) = week { section { h2 { (agent_texts::CALLS_OF_WEEK) } (week.render_with_table("week")) } }
        section {
            h2 { @if is_preview { (texts::WOULD_SEE) } @else { (texts::SEES) } }
            @match &preview {
                Ok(preview) => (render_preview(preview)),
                Err(cause) => (notice(&cause.to_string(), true)),
            }
        }
        @if agent.revoked_ms.is_none() {
            (edit_form(asked, agent, wanted, week.is_none()))
            (token_forms(asked, agent))
        }
        section { h2 { (texts::LAST_CALLS) } (last_calls(asked, agent)?) }
    };
    asked.page(Tab::Agents, &agent.name, false, content)
}

/// Renders the form that changes an agent, folded until it is used.
fn edit_form(
    asked: &SignedInRequest<'_>,
    agent: &Agent,
    wanted: Option<&AgentFormValues>,
    is_used: bool,
) -> Markup {
    let unreadable = AgentFormValues::default();
    html! {
        section {
            h2 { (texts::EDIT) }
            details id="edit" open[is_used] {
                summary { (agent_texts::CHANGE) }
                form method="post" action=(path(agent)) {
                    (proof(asked.session))
                    (fields(wanted.unwrap_or(&unreadable), &asked.site.spaces(), false))
                    div class="row" {
                        button name="do" value="preview" class="plain" { (texts::PREVIEW) }
                        button name="do" value="save" { (texts::SAVE) }
                    }
                }
            }
        }
    }
}

/// Asks whether the agent is meant: it cannot come back.
fn revoke_question(asked: &SignedInRequest<'_>, agent: &Agent) -> PageResult {
    let content = html! {
        h1 { (texts::REVOKE) " " (name(&agent.name)) "?" }
        p { (agent_texts::REVOKE_WHAT) }
        form method="post" action=(path(agent)) class="row" {
            (proof(asked.session))
            input type="hidden" name="sure" value="yes";
            button name="do" value="revoke" class="bad" { (texts::REVOKE) }
            a class="button plain" href=(path(agent)) { (agent_texts::BACK) }
        }
    };
    asked.page(Tab::Agents, texts::REVOKE, false, content)
}

fn facts(agent: &Agent, refused: Option<&AuthError>) -> Markup {
    html! {
        @if let Some(why) = refused { (notice(&why.to_string(), true)) }
        @if expires_soon(agent, now_ms()).is_some() { (notice(texts::EXPIRES_SOON, true)) }
        dl {
            dt { (texts::ID) } dd { code { (agent.id) } }
            dt { (texts::POLICY) } dd { (agent.preset.as_str()) }
            dt { (texts::SPACE) } dd { (name(agent.space.as_deref().unwrap_or("-"))) }
            dt { (texts::ADDED) } dd { (time(agent.created_ms)) }
            dt { (texts::EXPIRES) } dd { (time_or(agent.expires_ms, texts::NO_END)) }
            dt { (texts::LAST_USED) } dd { (time_or(agent.last_used_ms, texts::NEVER)) }
            @if let Some(ms) = agent.revoked_ms { dt { (texts::REVOKED) } dd { (time(ms)) } }
        }
    }
}

fn render_preview(preview: &PolicyPreview) -> Markup {
    html! {
        @if preview.tools.is_empty() { p { (texts::NO_TOOLS) } }
        @for (mode, tools) in &preview.tools {
            details {
                summary { (tools.len()) " " (texts::TOOLS_WHOSE_CALLS) " " (texts::mode(*mode)) }
                p { code { (tools.join(" ")) } }
            }
        }
        @if !preview.off.is_empty() {
            details {
                summary { (preview.off.len()) " " (texts::TOOLS_OFF) }
                p { @for (class, tool) in &preview.off { code { (tool) } " (" (class) ") " } }
            }
        }
        p class="soft" { (preview.hidden) " " (texts::TOOLS_HIDDEN) }
    }
}

fn token_forms(asked: &SignedInRequest<'_>, agent: &Agent) -> Markup {
    html! {
        section {
            h2 { (texts::TOKEN) }
            p { (texts::TOKEN_HOW) }
            form method="post" action=(path(agent)) class="row" {
                (proof(asked.session))
                button name="do" value="rotate" class="plain" { (texts::ROTATE) }
                button name="do" value="revoke" class="bad" { (texts::REVOKE) }
            }
        }
    }
}

fn last_calls(asked: &SignedInRequest<'_>, agent: &Agent) -> Result<Markup, PageError> {
    let wanted = |outcome: Option<&str>, limit| CallFilter {
        agent: Some(agent.id.clone()),
        outcome: outcome.map(str::to_owned),
        limit,
        ..CallFilter::default()
    };
    let (calls, refused, run_after) = asked.site.audit.read(|audit| {
        let refused = audit.calls(&wanted(Some("refused"), CALLS))?;
        Ok::<_, PageError>((
            audit.calls(&wanted(None, CALLS))?,
            refused,
            audit.run_after()?,
        ))
    })?;
    let all = format!("/owner/activity?agent={}", agent.id);
    Ok(html! {
        (calls_table(texts::LAST_CALLS, &calls, run_after))
        p { a href=(all) { (texts::ALL_CALLS) } }
        @if !refused.is_empty() {
            h2 { (texts::REFUSALS) }
            (calls_table(texts::REFUSALS, &refused, run_after))
        }
    })
}
