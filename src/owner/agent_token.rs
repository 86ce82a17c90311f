//! A token, which is shown once: how a program is connected with it, and whether that worked.

use maud::{Markup, PreEscaped, html};
use qrcode::QrCode;
use qrcode::render::svg;

use super::agent_cards::path;
use super::agent_texts;
use super::connect::{AuthorityFile, authority_file, mcp_url};
use super::header::Tab;
use super::page_error::PageError;
use super::parts::{exact_time, name, notice};
use super::site::{PageResult, SignedInRequest};
use super::texts;
use gatewren_base::config::Settings;
use gatewren_gate::owner_actions::{
    AUTHORITY_FILE, Snippet, SnippetConnection, StepKind, name_for_clients, snippets,
};
use gatewren_store::vault::Agent;

/// A token to show.
pub struct NewToken<'a> {
    /// Its agent, as it is now.
    pub agent: &'a Agent,
    /// The token.
    pub token: &'a str,
    /// The notice above it.
    pub words: &'a str,
    /// The program that it is for, by its name on the command line; another word is none of those.
    pub client: &'a str,
}

/// Renders a token with the steps of its program, or of each program.
pub fn token_page(asked: &SignedInRequest<'_>, new: &NewToken<'_>) -> PageResult {
    let NewToken {
        agent,
        token,
        words,
        client,
    } = *new;
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
    let (chosen, others): (Vec<_>, Vec<_>) = snippets(&way)
        .into_iter()
        .partition(|snippet| snippet.client == client);
    let content = html! {
        h1 { (name(&agent.name)) }
        (notice(words, false))
        section {
            h2 { (texts::TOKEN) }
            p { (texts::TOKEN_ONCE) }
            p { (texts::VALID_UNTIL) ": " (agent.expires_ms.map_or_else(|| html! { (texts::NO_END) }, exact_time)) }
            pre id="token" { (token) }
            button type="button" class="plain" data-copy="token" data-done=(texts::COPIED) hidden { (texts::COPY) }
            details { summary { (texts::QR) } div class="qr" role="img" aria-label=(texts::QR) { (qr(token)?) } }
        }
        @for snippet in &chosen { section { h2 { (agent_texts::CONNECT_IT) " " (snippet.title) } (setup_steps(snippet)) } }
        (first_call(agent))
        section {
            h2 { @if chosen.is_empty() { (texts::CLIENTS) } @else { (agent_texts::OTHER_CLIENTS) } }
            @for snippet in &others { details { summary { (snippet.title) } (setup_steps(snippet)) } }
        }
        p { a href=(path(agent)) { (texts::TO_AGENT) } }
    };
    asked.page(Tab::Agents, &agent.name, false, content)
}

/// Renders whether the agent has made a call. The script looks again until it has.
pub fn first_call(agent: &Agent) -> Markup {
    let waits = agent.last_used_ms.is_none();
    html! {
        div id="first-call" class="card notice" role="status" data-poll=[waits.then(|| path(agent))]
            data-done=(agent_texts::CONNECTED) {
            @if waits {
                strong { (agent_texts::WAITING) } " " span class="soft" { (agent_texts::WITHOUT_SCRIPT) }
            } @else { strong class="good" { (agent_texts::CONNECTED) } }
        }
    }
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
