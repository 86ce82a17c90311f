//! The agents page: the list, and the form for a new agent, whose token is shown once.

use maud::{Markup, PreEscaped, html};
use qrcode::QrCode;
use qrcode::render::svg;

use super::agent_form::{AgentFormValues, fields};
use super::confirm::confirm;
use super::connect::{AuthorityFile, authority_file, mcp_url};
use super::header::Tab;
use super::page_error::PageError;
use super::parts::{exact_time, name, notice, proof, table, time_or};
use super::site::{PageResult, SignedInRequest};
use super::{schedules, texts};
use gatewren_base::config::Settings;
use gatewren_base::sys::now_ms;
use gatewren_gate::owner_actions::{
    AUTHORITY_FILE, Snippet, SnippetConnection, StepKind, admit, expires_soon, name_for_clients,
    snippets, token_status,
};
use gatewren_store::vault::Agent;

/// Renders the page.
pub fn page(asked: &SignedInRequest<'_>) -> PageResult {
    render_list(asked, &AgentFormValues::default(), None)
}

/// Renders the list and the form for a new agent, filled with the submitted values after an error.
fn render_list(
    asked: &SignedInRequest<'_>,
    wanted: &AgentFormValues,
    wrong: Option<&str>,
) -> PageResult {
    let site = asked.site;
    let spaces = site.spaces();
    let agents = site.vault.agents().list()?;
    let (mut current, gone): (Vec<_>, Vec<_>) =
        agents.iter().partition(|agent| agent.revoked_ms.is_none());
    current.sort_by_key(|agent| std::cmp::Reverse(agent.last_used_ms));
    let rows = |agents: &[&Agent]| {
        html! {
            @for agent in agents { tr {
                td { a href=(path(agent)) { (name(&agent.name)) } }
                td { (agent.preset.as_str()) @if agent.overrides != "{}" { "+" } }
                td { (name(agent.space.as_deref().unwrap_or("-"))) }
                td {
                    (token_status(agent, &spaces).word)
                    @if expires_soon(agent, now_ms()).is_some() { ", " (texts::SOON) }
                }
                td { (time_or(agent.last_used_ms, texts::NEVER)) }
            } }
        }
    };
    let content = html! {
        h1 { (texts::AGENTS) }
        (asked.render_notice())
        @if current.is_empty() { p { (texts::NO_AGENTS) } } @else { (listing(texts::AGENTS, &rows(&current))) }
        (schedules::section(site, &agents)?)
        section {
            h2 { (texts::NEW_AGENT) }
            @if let Some(words) = wrong { (notice(words, true)) }
            form method="post" action="/owner/agents" {
                (proof(asked.session))
                (fields(wanted, &spaces, true))
                div class="row" { button { (texts::ADD_AGENT) } }
            }
        }
        @if !gone.is_empty() {
            details {
                summary { (texts::REVOKED_AGENTS) }
                (listing(texts::REVOKED_AGENTS, &rows(&gone)))
            }
        }
    };
    asked.page(Tab::Agents, texts::AGENTS, false, content)
}

fn listing(label: &str, rows: &Markup) -> Markup {
    let heads = [
        texts::NAME,
        texts::POLICY,
        texts::SPACE,
        texts::STATE,
        texts::LAST_USED,
    ];
    table(label, &heads, rows)
}

/// The path of an agent's own page.
pub fn path(agent: &Agent) -> String {
    format!("/owner/agents/{}", agent.id)
}

/// Adds an agent, and shows its token.
pub async fn add(asked: &SignedInRequest<'_>) -> PageResult {
    let wanted = AgentFormValues::of(asked.visit);
    let admission = match wanted.admission(&asked.site.spaces()) {
        Ok(admission) => admission,
        Err(words) => return render_list(asked, &wanted, Some(&words)),
    };
    if let Some(page) = confirm(asked).await? {
        return Ok(page);
    }
    match admit(&asked.owner_context(), admission).await {
        Ok((agent, token)) => token_page(asked, &agent, token.expose(), texts::AGENT_ADDED),
        Err(words) => render_list(asked, &wanted, Some(&words)),
    }
}

/// Renders a token, which is shown only here, with a snippet for each client.
pub fn token_page(
    asked: &SignedInRequest<'_>,
    agent: &Agent,
    token: &str,
    words: &str,
) -> PageResult {
    let url = mcp_url(asked.visit);
    let authority = authority_file(asked.site);
    let fingerprint = authority.as_ref().map(AuthorityFile::fingerprint);
    let name_of = |settings: &Settings| name_for_clients(&settings.names);
    let server = asked.site.live.read(name_of);
    let way = SnippetConnection {
        url: &url,
        name: server.as_deref(),
        token: Some(token),
        authority: authority.as_ref().map(|_| AUTHORITY_FILE),
        fingerprint: fingerprint.as_deref(),
        // Not needed: this page knows the fingerprint.
        authority_on_server: "",
        agent: Some(&agent.name),
    };
    let content = html! {
        h1 { (name(&agent.name)) }
        (notice(words, false))
        section {
            h2 { (texts::TOKEN) }
            p { (texts::TOKEN_ONCE) }
            p { (texts::VALID_UNTIL) ": " (agent.expires_ms.map_or_else(|| html! { (texts::NO_END) }, exact_time)) }
            pre id="token" { (token) }
            button type="button" class="plain" data-copy="token" data-done=(texts::COPIED) hidden { (texts::COPY) }
            div class="qr" role="img" aria-label=(texts::QR) { (qr(token)?) }
        }
        section {
            h2 { (texts::CLIENTS) }
            @for snippet in snippets(&way) {
                details {
                    summary { (snippet.title) }
                    (setup_steps(&snippet))
                }
            }
        }
        p { a href=(path(agent)) { (texts::TO_AGENT) } }
    };
    asked.page(Tab::Agents, &agent.name, false, content)
}

/// Renders the numbered steps that connect a client, each text with a button that copies it.
fn setup_steps(snippet: &Snippet) -> Markup {
    let copied = |number: usize, text: &str| {
        let id = format!("snippet-{}-{number}", snippet.client);
        html! {
            pre id=(id) { (text) }
            button type="button" class="plain" data-copy=(id) data-done=(texts::COPIED) hidden { (texts::COPY) }
        }
    };
    html! {
        ol {
            @for (number, step) in (1..).zip(&snippet.steps) {
                li {
                    p { (step.words) }
                    @match step.kind {
                        StepKind::Paste => (copied(number, &snippet.text)),
                        StepKind::Link => p { a class="button plain" href=(step.code) { (texts::OPEN_CLIENT) } },
                        _ => @if !step.code.is_empty() { (copied(number, &step.code)) },
                    }
                }
            }
        }
    }
}

/// Renders a text as a QR code; the SVG contains no part of the text itself.
fn qr(text: &str) -> Result<Markup, PageError> {
    let code = QrCode::new(text.as_bytes()).map_err(|_| PageError::Unavailable)?;
    let drawn = code
        .render::<svg::Color<'_>>()
        .min_dimensions(240, 240)
        .build();
    let svg = drawn
        .find("<svg")
        .and_then(|at| drawn.get(at..))
        .unwrap_or_default();
    Ok(PreEscaped(svg.to_owned()))
}
