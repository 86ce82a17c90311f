//! Asks for a typed name before a request is approved that loses data for good: one press is not enough for it.

use hyper::Response;
use maud::html;

use super::change_parts::{headline, path};
use super::header::Tab;
use super::inbox_texts;
use super::page_error::PageError;
use super::parts::{name, notice};
use super::site::SignedInRequest;
use super::texts;
use gatewren_gate::http::ResponseBody;
use gatewren_store::vault::Change;
use gatewren_tools::tool_texts::loses_data;

/// The name of the field.
const FIELD: &str = "typed";

/// Checks that the form has the name of the target, if the change loses data. Otherwise returns a page that asks for
/// it and then sends the same form again. The caller must not act before this returns `None`.
pub fn confirm_name(
    asked: &SignedInRequest<'_>,
    change: &Change,
) -> Result<Option<Response<ResponseBody>>, PageError> {
    if !loses_data(&change.tool) {
        return Ok(None);
    }
    let typed = asked.visit.field(FIELD);
    // Without a target, it is the name of the tool.
    let wanted = change.target.as_deref().unwrap_or(&change.tool);
    if typed.as_deref().is_some_and(|typed| typed.trim() == wanted) {
        return Ok(None);
    }
    let sent = asked.visit.all_fields().into_iter();
    let sent = sent.filter(|(field, _)| field != FIELD);
    let content = html! {
        h1 { (headline(change)) "?" }
        @if typed.is_some() { (notice(inbox_texts::OTHER_NAME, true)) }
        form method="post" action=(path(change)) class="card loses" {
            @for (field, value) in sent { input type="hidden" name=(field) value=(value); }
            p { (inbox_texts::NO_WAY_BACK_HOW) " " strong { (name(wanted)) } }
            div class="field" {
                label for=(FIELD) { (inbox_texts::NAME) }
                input type="text" id=(FIELD) name=(FIELD) autocomplete="off" autocapitalize="none" spellcheck="false" required;
            }
            div class="row" {
                button class="bad" { (texts::APPROVE) }
                a class="button plain" href=(path(change)) { (texts::SURE_NO) }
            }
        }
    };
    asked
        .page(Tab::Inbox, texts::APPROVE, false, content)
        .map(Some)
}
