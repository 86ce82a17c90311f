//! The page that asks the owner for the password again before a program gets access.

use hyper::{Response, StatusCode};
use maud::html;

use super::authorize::AuthorizationRequest;
use super::form::OAuthParameters;
use super::page::page;
use super::redirect::policy_source;
use super::texts;
use crate::http::ResponseBody;

/// The name of the password field.
pub const CONFIRM_PASSWORD: &str = "confirm_password";

/// The name of the field for password managers next to it.
const USERNAME: &str = "username";

/// Asks for the password and resubmits the form unchanged. Nothing has been done yet.
pub fn confirm_page(
    asked: &AuthorizationRequest,
    form: &OAuthParameters,
    wrong: Option<&str>,
    theme: Option<&str>,
) -> Response<ResponseBody> {
    let own = [CONFIRM_PASSWORD, USERNAME];
    let sent = form.all().filter(|(name, _)| !own.contains(name));
    let content = html! {
        @if let Some(wrong) = wrong { p class="card notice bad" role="alert" { (wrong) "." } }
        p { (texts::CONFIRM_WHY) }
        form method="post" action="/connect/authorize" {
            @for (name, value) in sent { input type="hidden" name=(name) value=(value); }
            input type="hidden" name=(USERNAME) value="owner" autocomplete="username";
            div class="field" {
                label for=(CONFIRM_PASSWORD) { (texts::PASSWORD) }
                input type="password" id=(CONFIRM_PASSWORD) name=(CONFIRM_PASSWORD) autocomplete="current-password" required;
            }
            div class="row" { button { (texts::GO_ON) } }
        }
    };
    let leads_to = policy_source(&asked.redirect_uri);
    page(StatusCode::OK, texts::CONFIRM, &leads_to, theme, &content)
}
