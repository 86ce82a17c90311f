//! Asks for the password again before an action that grants or widens access.

use hyper::Response;
use maud::html;

use super::header::Tab;
use super::page_error::PageError;
use super::parts;
use super::site::SignedInRequest;
use super::texts;
use gatewren_gate::http::ResponseBody;

/// The name of the password field.
const FIELD: &str = "confirm_password";

/// The name of the user name field, for password managers.
const USERNAME: &str = "username";

/// Checks that the owner has entered the password in the last 10 minutes of this login, or with this form.
/// Otherwise returns a page that asks for it and then sends the same form again. The caller must not act before
/// this returns `None`.
pub async fn confirm(
    asked: &SignedInRequest<'_>,
) -> Result<Option<Response<ResponseBody>>, PageError> {
    let (logins, key) = (&asked.site.logins, asked.session.key);
    let wrong = match asked.visit.secret_field(FIELD) {
        Some(password) => {
            let from = asked.visit.from();
            match logins.confirm(key, password.expose(), from).await {
                Ok(()) => return Ok(None),
                Err(cause) => Some(cause.to_string()),
            }
        }
        None => match logins.has_confirmed(key) {
            Ok(true) => return Ok(None),
            Ok(false) => None,
            Err(_) => return Err(PageError::Unavailable),
        },
    };
    page(asked, wrong.as_deref()).map(Some)
}

fn page(
    asked: &SignedInRequest<'_>,
    wrong: Option<&str>,
) -> Result<Response<ResponseBody>, PageError> {
    let sent = asked.visit.all_fields().into_iter();
    let sent = sent.filter(|(name, _)| name != FIELD && name != USERNAME);
    let content = html! {
        h1 { (texts::CONFIRM) }
        @if let Some(words) = wrong { (parts::notice(words, true)) }
        p { (texts::CONFIRM_WHY) }
        form method="post" action=(asked.visit.path()) {
            @for (name, value) in sent { input type="hidden" name=(name) value=(value); }
            input type="hidden" name=(USERNAME) value="owner" autocomplete="username";
            div class="field" {
                label for=(FIELD) { (texts::PASSWORD) }
                input type="password" id=(FIELD) name=(FIELD) autocomplete="current-password" required;
            }
            div class="row" { button { (texts::GO_ON) } }
        }
    };
    asked.page(Tab::Agents, texts::CONFIRM, false, content)
}
