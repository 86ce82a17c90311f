//! The consent page: shows the owner the program that asks for access.

use hyper::{Response, StatusCode};
use maud::{Markup, html};

use super::authorize::AuthorizationRequest;
use super::page::page;
use super::redirect::{RedirectKind, host, place, policy_source};
use super::texts;
use crate::http::ResponseBody;
use gatewren_base::config::{Preset, Spaces, WHOLE_SERVER};
use gatewren_base::sys::{exact_line, text_notes};
use gatewren_store::vault::Agent;

/// The contents of the consent page.
pub struct ConsentPage<'a> {
    /// The authorization request.
    pub asked: &'a AuthorizationRequest,
    /// The agent that the program had before, if its access is still valid.
    pub agent: Option<&'a Agent>,
    /// A free name for a new agent.
    pub name: &'a str,
    /// The configured spaces.
    pub spaces: &'a Spaces,
    /// The error in the form that the owner has just submitted.
    pub wrong: Option<&'a str>,
    /// The theme of the owner's page.
    pub theme: Option<&'a str>,
    /// The parameters of the request, to be submitted again.
    pub parameters: &'a [(&'static str, String)],
}

impl ConsentPage<'_> {
    /// Renders the page.
    pub fn to_response(&self) -> Response<ResponseBody> {
        let content = html! {
            @if let Some(wrong) = self.wrong {
                p class="card notice bad" role="alert" { (wrong) }
            }
            (self.program())
            form method="post" action="/connect/authorize" {
                @for (name, value) in self.parameters {
                    input type="hidden" name=(name) value=(value);
                }
                @match self.agent {
                    Some(agent) => { (existing_agent(agent)) }
                    None => { (self.unknown()) }
                }
                div class="row" {
                    button name="decision" value="approve" { (texts::APPROVE) }
                    button class="plain" name="decision" value="refuse" { (texts::REFUSE) }
                }
            }
        };
        let leads_to = policy_source(&self.asked.redirect_uri);
        let title = texts::ASKS;
        page(StatusCode::OK, title, &leads_to, self.theme, &content)
    }

    /// Renders the program and the destination of the answer.
    fn program(&self) -> Markup {
        let AuthorizationRequest {
            client,
            redirect_uri,
            ..
        } = self.asked;
        html! {
            p { (texts::ONLY_YOURS) }
            dl {
                dt { (texts::CALLS_ITSELF) }
                dd { "“" bdi { (exact_line(&client.name)) } "”" }
                @for note in text_notes(&client.name) { dd { b { (note) } } }
                dt { (texts::WHO_SAYS_SO) }
                @match &client.metadata_host {
                    Some(host) => { dd { (texts::A_SERVER) " " code { (exact_line(host)) } (texts::BY_ITS_DOCUMENT) " " code { (exact_line(&client.id)) } } }
                    None => { dd { (texts::ITSELF_ALONE) } }
                }
                dt { (texts::ANSWER_TO) }
                dd { code { (exact_line(host(redirect_uri))) } }
            }
            @if place(redirect_uri) == Some(RedirectKind::SameComputer) {
                p class="card notice" {
                    (texts::THIS_COMPUTER)
                }
            }
        }
    }

    /// Renders the choices for a new agent.
    fn unknown(&self) -> Markup {
        html! {
            div class="field" {
                label for="name" { (texts::CALL_IT) }
                input type="text" id="name" name="name" value=(self.name) maxlength="63" autocapitalize="none" required;
            }
            fieldset {
                legend { (texts::IT_MAY) }
                @for preset in Preset::ALL {
                    label class="choice" {
                        input type="radio" name="policy" value=(preset.as_str()) checked[preset == Preset::Observe];
                        span { b { (preset.as_str()) } ": " (texts::preset(preset)) }
                    }
                }
            }
            @if self.spaces.is_empty() {
                input type="hidden" name="space" value=(WHOLE_SERVER);
            } @else {
                div class="field" {
                    label for="space" { (texts::IN_SPACE) }
                    select id="space" name="space" {
                        @for name in self.spaces.keys() { option value=(name) { (name) } }
                        option value=(WHOLE_SERVER) { (texts::WHOLE_SERVER) }
                    }
                }
            }
            p class="soft" {
                (texts::BECOMES_AGENT) " " a href="/owner/agents" { (texts::AGENTS) }
            }
        }
    }
}

/// Renders the existing agent, which the program will use again.
fn existing_agent(agent: &Agent) -> Markup {
    let space = match agent.space.as_deref() {
        Some(WHOLE_SERVER) => texts::WHOLE_SERVER,
        Some(space) => space,
        None => texts::NO_SPACE,
    };
    let differs = if agent.overrides == "{}" {
        ""
    } else {
        texts::WITH_CHANGES
    };
    html! {
        input type="hidden" name="agent" value=(agent.id);
        p {
            (texts::LET_IN_BEFORE) " " b { bdi { (exact_line(&agent.name)) } } " (" code { (agent.id) } "), " (texts::POLICY) " "
            b { (agent.preset.as_str()) } (differs) ", " (texts::IN) " " b { (space) } "."
        }
    }
}
