//! The logins page: the owner's sessions and the agents that exchanged their token; each can be ended.

use maud::html;

use super::header::Tab;
use super::page_error::PageError;
use super::parts::{exact_time, name, proof, time};
use super::site::{PageResult, SignedInRequest, redirect_with_notice};
use super::texts;
use gatewren_gate::owner_actions;

/// Renders the page.
pub fn page(asked: &SignedInRequest<'_>) -> PageResult {
    let logins = asked.site.vault.logins().list()?;
    let agents = asked.site.vault.agents().list()?;
    let who = |token: Option<[u8; 32]>| match token {
        None => texts::OWNER.to_owned(),
        Some(token) => {
            let agent = agents.iter().find(|agent| agent.token_sha256 == token);
            agent.map_or(texts::FORMER_AGENT.to_owned(), |agent| agent.name.clone())
        }
    };
    let content = html! {
        h1 { (texts::LOGINS) }
        (asked.render_notice())
        @for login in &logins {
            @let is_available = login.id == asked.session.login;
            form method="post" action="/owner/logins" class="card row" {
                (proof(asked.session))
                input type="hidden" name="id" value=(login.id);
                div class="note" {
                    strong { (name(&who(login.agent))) } @if is_available { " " span class="tag soft" { (texts::THIS_ONE) } }
                    div { (name(&login.address)) ", " (texts::SINCE) " " (exact_time(login.created_ms)) }
                    div class="soft" { (texts::LAST_USED) " " (time(login.used_ms)) }
                }
                button class="plain" { (texts::SIGN_OUT) }
            }
        }
        form method="post" action="/owner/logins" class="row" {
            (proof(asked.session))
            input type="hidden" name="everywhere" value="1";
            button class="bad" { (texts::SIGN_OUT_EVERYWHERE) }
        }
    };
    asked.page(Tab::Settings, texts::LOGINS, false, content)
}

/// Ends one login, or all of the owner's.
pub async fn end(asked: &SignedInRequest<'_>) -> PageResult {
    let owner = asked.owner_context();
    if asked.visit.field("everywhere").is_some() {
        owner_actions::sign_out_everywhere(&owner).await?;
        return Ok(redirect_with_notice("/owner/sign-in", "signed-out"));
    }
    let id = asked.visit.field("id").unwrap_or_default();
    if owner_actions::sign_out(&owner, &id).await? {
        Ok(redirect_with_notice("/owner/logins", "signed-out"))
    } else {
        Err(PageError::Absent)
    }
}
