//! A new agent: first the program, then its access, then its token with the steps to connect.

use maud::{Markup, html};

use super::agent_form::{AgentFormValues, fields};
use super::agent_texts;
use super::agent_token::{NewToken, token_page};
use super::confirm::confirm;
use super::header::Tab;
use super::parts::{notice, proof};
use super::site::{PageResult, SignedInRequest};
use super::texts;
use gatewren_gate::owner_actions::{admit, client_names};

/// The name of the field with the program.
const CLIENT: &str = "client";

/// Renders the choice of the program, and below it the form when one is chosen.
pub fn page(asked: &SignedInRequest<'_>) -> PageResult {
    let client = asked.visit.query(CLIENT).unwrap_or_default();
    let agents = asked.site.vault.agents().list()?;
    let is_free = |name: &str| !agents.iter().any(|agent| agent.name == name);
    let is_known = client_names().any(|(word, _)| word == client);
    let name = Some(client.as_str()).filter(|name| is_known && is_free(name));
    let wanted = AgentFormValues::named(name.unwrap_or_default());
    render(asked, &client, &wanted, None)
}

/// Adds an agent, and shows its token.
pub async fn add(asked: &SignedInRequest<'_>) -> PageResult {
    let wanted = AgentFormValues::of(asked.visit);
    let client = asked.visit.field(CLIENT);
    let client = client.as_deref().unwrap_or(agent_texts::OTHER);
    let admission = match wanted.admission(&asked.site.spaces()) {
        Ok(admission) => admission,
        Err(words) => return render(asked, client, &wanted, Some(&words)),
    };
    if let Some(page) = confirm(asked).await? {
        return Ok(page);
    }
    match admit(&asked.owner_context(), admission).await {
        Ok((agent, token)) => token_page(
            asked,
            &NewToken {
                agent: &agent,
                token: token.expose(),
                words: texts::AGENT_ADDED,
                client,
            },
        ),
        Err(words) => render(asked, client, &wanted, Some(&words)),
    }
}

fn render(
    asked: &SignedInRequest<'_>,
    client: &str,
    wanted: &AgentFormValues,
    wrong: Option<&str>,
) -> PageResult {
    let content = html! {
        h1 { (agent_texts::NEW) }
        section {
            h2 id="client" { (agent_texts::CHOOSE_CLIENT) }
            (choice(client))
        }
        @if !client.is_empty() {
            section {
                h2 { (agent_texts::CHOOSE_ACCESS) }
                @if let Some(words) = wrong { (notice(words, true)) }
                form method="post" action="/owner/agents" {
                    (proof(asked.session))
                    input type="hidden" name=(CLIENT) value=(client);
                    (fields(wanted, &asked.site.spaces(), true))
                    div class="row" { button { (texts::ADD_AGENT) } }
                }
            }
        }
    };
    asked.page(Tab::Agents, agent_texts::NEW, false, content)
}

/// Renders a link for each program.
fn choice(current: &str) -> Markup {
    let all = client_names().chain([(agent_texts::OTHER, agent_texts::OTHER_CLIENT)]);
    html! {
        div class="clients" role="group" aria-labelledby="client" {
            @for (word, title) in all {
                a class="button plain" href=(format!("/owner/agents/new?{CLIENT}={word}"))
                    aria-current=[(word == current).then_some("true")] {
                    span class="avatar" aria-hidden="true" { (title.chars().next().unwrap_or('?')) } " " (title)
                }
            }
        }
    }
}
