//! The page on which the owner sees who asks, and decides.

use hyper::{Response, StatusCode};
use maud::{Markup, html};

use super::authorize::Asked;
use super::page::page;
use super::redirect::{Place, host, place, policy_source};
use crate::config::{Preset, Spaces, WHOLE_BOX};
use crate::http::Body;
use crate::vault::Agent;

/// What the owner is shown.
pub struct Question<'a> {
    /// What is asked.
    pub asked: &'a Asked,
    /// The agent that the program came in as before, if it may still.
    pub agent: Option<&'a Agent>,
    /// The spaces of this box.
    pub spaces: &'a Spaces,
    /// What was wrong with what the owner has just sent.
    pub wrong: Option<&'a str>,
    /// The parameters of the request, to be sent again.
    pub parameters: &'a [(&'static str, String)],
}

impl Question<'_> {
    /// The page.
    pub fn to_response(&self) -> Response<Body> {
        let content = html! {
            @if let Some(wrong) = self.wrong {
                p class="card notice bad" role="alert" { (wrong) "." }
            }
            (self.program())
            form method="post" action="/connect/authorize" {
                @for (name, value) in self.parameters {
                    input type="hidden" name=(name) value=(value);
                }
                @match self.agent {
                    Some(agent) => { (known(agent)) }
                    None => { (self.unknown()) }
                }
                div class="row" {
                    button name="decision" value="approve" { "Approve" }
                    button class="plain" name="decision" value="refuse" { "Refuse" }
                }
            }
        };
        let leads_to = policy_source(&self.asked.redirect_uri);
        let title = "A program asks for access";
        page(StatusCode::OK, title, &leads_to, &content)
    }

    /// Who asks, and where the answer goes.
    fn program(&self) -> Markup {
        let Asked {
            client,
            redirect_uri,
            ..
        } = self.asked;
        html! {
            p { "Approve only what you have just begun yourself." }
            dl {
                dt { "It calls itself" }
                dd { "“" bdi { (client.name) } "”" }
                dt { "Who says so" }
                @match &client.vouched_by {
                    Some(host) => { dd { "the server " code { (host) } ", by the document " code { (client.id) } } }
                    None => { dd { "the program alone: any other could call itself the same" } }
                }
                dt { "The answer goes to" }
                dd { code { (host(redirect_uri)) } }
            }
            @if place(redirect_uri) == Some(Place::SameComputer) {
                p class="card notice" {
                    "That is the computer in front of you. Whatever program runs there and waits for the answer gets it."
                }
            }
        }
    }

    /// What it will be, where it is new.
    fn unknown(&self) -> Markup {
        html! {
            div class="field" {
                label for="name" { "Call it" }
                input type="text" id="name" name="name" value=(self.asked.client.name) maxlength="64" required;
            }
            fieldset {
                legend { "It may" }
                @for preset in Preset::ALL {
                    label class="choice" {
                        input type="radio" name="policy" value=(preset.as_str()) checked[preset == Preset::Observe];
                        span { b { (preset.as_str()) } ": " (meaning(preset)) }
                    }
                }
            }
            @if self.spaces.is_empty() {
                input type="hidden" name="space" value=(WHOLE_BOX);
            } @else {
                div class="field" {
                    label for="space" { "In the space" }
                    select id="space" name="space" {
                        @for name in self.spaces.keys() { option value=(name) { (name) } }
                        option value=(WHOLE_BOX) { "the whole box" }
                    }
                }
            }
            p class="soft" {
                "It becomes an agent: " a href="/owner/agents" { "Agents" } " and " code { "gatewren agent" }
                " show it, and change and end what it may."
            }
        }
    }
}

/// What it was, and will be again.
fn known(agent: &Agent) -> Markup {
    let space = match agent.space.as_deref() {
        Some(WHOLE_BOX) => "the whole box",
        Some(space) => space,
        None => "no space",
    };
    let differs = if agent.overrides == "{}" {
        ""
    } else {
        ", with changes of yours"
    };
    html! {
        input type="hidden" name="agent" value=(agent.id);
        p {
            "You let this program in before. It will be the same agent again: " b { bdi { (agent.name) } } " ("
            code { (agent.id) } "), policy " b { (agent.preset.as_str()) } (differs) ", in " b { (space) } "."
        }
    }
}

fn meaning(preset: Preset) -> &'static str {
    match preset {
        Preset::Observe => "see, and change nothing",
        Preset::Suggest => "see, and propose changes that you decide on",
        Preset::Operate => "change what can be changed back, and propose the rest",
        Preset::Admin => "do everything; the gravest only when it is confirmed",
    }
}
