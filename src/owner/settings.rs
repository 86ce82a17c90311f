//! The settings page, which leads to the pages for notifications, clients and logins, the theme, and the help page.

use maud::html;

use super::frame::redirect;
use super::header::Tab;
use super::notification_texts::{NOTIFICATIONS, NOTIFICATIONS_WHAT};
use super::page_error::PageError;
use super::sign_in::sanitize_target;
use super::site::{PageResult, SignedInRequest};
use super::texts;
use super::theme::{Theme, theme_form};
use gatewren_gate::guard::set_theme_cookie;

/// Renders the settings page.
pub fn page(asked: &SignedInRequest<'_>) -> PageResult {
    let links = [
        ("/owner/notifications", NOTIFICATIONS, NOTIFICATIONS_WHAT),
        ("/owner/connect", texts::CONNECT, texts::CONNECT_WHAT),
        ("/owner/logins", texts::LOGINS, texts::LOGINS_WHAT),
        ("/owner/help", texts::HELP, texts::HELP_WHAT),
    ];
    let content = html! {
        h1 { (texts::SETTINGS) }
        @for (path, name, what) in links { section { h2 { a href=(path) { (name) } } p { (what) } } }
        section { h2 { (texts::THEME) } (theme_form(Theme::of(asked.visit), asked.session)) }
    };
    asked.page(Tab::Settings, texts::SETTINGS, false, content)
}

/// Sets the theme, and returns to the page with the form.
pub fn choose_theme(asked: &SignedInRequest<'_>) -> PageResult {
    let word = asked.visit.field("theme").unwrap_or_default();
    if Theme::named(&word).is_none() {
        return Err(PageError::Refused(texts::NO_SUCH_ACTION.to_owned()));
    }
    let from = asked.visit.header("referer").and_then(|url| {
        let (_, rest) = url.split_once("://")?;
        Some(rest.get(rest.find('/')?..)?.to_owned())
    });
    let mut response = redirect(&sanitize_target(from));
    set_theme_cookie(&mut response, &word);
    Ok(response)
}
