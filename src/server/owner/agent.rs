//! The page of one agent: its permissions, its calls, and the form that changes it.

use hyper::Response;
use maud::{Markup, html};

use super::agent_form::{AgentFormValues, fields};
use super::agents::token_page;
use super::call_table::calls_table;
use super::confirm::confirm;
use super::header::Tab;
use super::page_error::PageError;
use super::parts::{name, notice, proof, time, time_or};
use super::site::{PageResult, SignedInRequest, redirect_with_notice};
use super::texts;
use gatewren_base::config::Policy;
use gatewren_base::sys::now_ms;
use gatewren_gate::auth::{AuthError, policy_of};
use gatewren_gate::http::ResponseBody;
use gatewren_gate::owner_actions;
use gatewren_gate::owner_actions::{
    PolicyPreview, change_lines, expires_soon, gives_more_access, token_status,
};
use gatewren_store::vault::{Agent, AuditReader, CallFilter};

/// The number of its calls that are listed; the audit has all.
const CALLS: u32 = 10;

/// Renders the page.
pub fn page(asked: &SignedInRequest<'_>, id: &str) -> PageResult {
    let agent = find_agent(asked, id)?;
    let wanted = policy_of(&agent).map(|policy| AgentFormValues::now(&agent, &policy));
    render_agent(asked, &agent, &agent, wanted.ok().as_ref(), None)
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
        Some("revoke") => {
            owner_actions::revoke(&owner, &before).await?;
            Ok(redirect_with_notice("/owner/agents", "revoked"))
        }
        Some("rotate") => {
            if let Some(page) = confirm(asked).await? {
                return Ok(page);
            }
            let token = owner_actions::rotate(&owner, &before).await?;
            token_page(asked, &before, token.expose(), texts::TOKEN_ROTATED)
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
    let after = match wanted.changed(before, &policy, &asked.site.spaces()) {
        Ok(after) => after,
        Err(words) => return render_agent(asked, before, before, Some(&wanted), Some(&words)),
    };
    if !save {
        return render_agent(asked, before, &after, Some(&wanted), None);
    }
    if gives_more_access(before, &after)
        && let Some(page) = confirm(asked).await?
    {
        return Ok(page);
    }
    let changes = match owner_actions::edit(&asked.owner_context(), before, &after).await {
        Ok(changes) => changes,
        Err(words) => return render_agent(asked, before, before, Some(&wanted), Some(&words)),
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

/// Renders an agent, with a preview of its changed permissions if `after` differs.
fn render_agent(
    asked: &SignedInRequest<'_>,
    agent: &Agent,
    after: &Agent,
    wanted: Option<&AgentFormValues>,
    wrong: Option<&str>,
) -> PageResult {
    let site = asked.site;
    let spaces = site.spaces();
    let offered = site.tools()?;
    let is_preview = agent != after;
    let preview =
        policy_of(after).map(|policy| PolicyPreview::of(after, policy, &spaces, &offered));
    let changes = is_preview.then(|| owner_actions::changes_between(agent, after));
    let unreadable = AgentFormValues::default();
    let content = html! {
        h1 { (name(&agent.name)) }
        (asked.render_notice())
        @if let Some(words) = wrong { (notice(words, true)) }
        @if let Some(changes) = &changes {
            section class="notice" {
                h2 { (texts::PREVIEW) }
                @if changes.is_empty() { p { (texts::NOTHING_DIFFERS) } }
                ul { @for line in change_lines(changes) { li { (name(line.trim())) } } }
            }
        }
        section { (facts(agent, token_status(agent, &spaces).refused.as_ref())) }
        section {
            h2 { @if is_preview { (texts::WOULD_SEE) } @else { (texts::SEES) } }
            @match &preview {
                Ok(preview) => (render_preview(preview)),
                Err(cause) => (notice(&cause.to_string(), true)),
            }
        }
        @if agent.revoked_ms.is_none() {
            section {
                h2 { (texts::EDIT) }
                form method="post" action=(super::agents::path(agent)) {
                    (proof(asked.session))
                    (fields(wanted.unwrap_or(&unreadable), &spaces, false))
                    div class="row" {
                        button name="do" value="preview" class="plain" { (texts::PREVIEW) }
                        button name="do" value="save" { (texts::SAVE) }
                    }
                }
            }
            (token_forms(asked, agent))
        }
        section { h2 { (texts::LAST_CALLS) } (last_calls(asked, agent)?) }
    };
    asked.page(Tab::Agents, &agent.name, false, content)
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
            form method="post" action=(super::agents::path(agent)) class="row" {
                (proof(asked.session))
                button name="do" value="rotate" class="plain" { (texts::ROTATE) }
                button name="do" value="revoke" class="bad" { (texts::REVOKE) }
            }
        }
    }
}

fn last_calls(asked: &SignedInRequest<'_>, agent: &Agent) -> Result<Markup, PageError> {
    let audit = AuditReader::open(&asked.site.file("vault.db"))?;
    let wanted = |outcome: Option<&str>, limit| CallFilter {
        agent: Some(agent.id.clone()),
        outcome: outcome.map(str::to_owned),
        limit,
        ..CallFilter::default()
    };
    let calls = audit.calls(&wanted(None, CALLS))?;
    let refused = audit.calls(&wanted(Some("refused"), CALLS))?;
    let all = format!("/owner/activity?agent={}", agent.id);
    Ok(html! {
        (calls_table(texts::LAST_CALLS, &calls, audit.run_after()?))
        p { a href=(all) { (texts::ALL_CALLS) } }
        @if !refused.is_empty() {
            h2 { (texts::REFUSALS) }
            (calls_table(texts::REFUSALS, &refused, audit.run_after()?))
        }
    })
}
