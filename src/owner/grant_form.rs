//! The form for a grant: how far it goes is chosen here, and the widest one needs a second confirmation.

use maud::{Markup, html};

use super::change_parts::path;
use super::header::Tab;
use super::page_error::PageError;
use super::parts::{notice, proof};
use super::site::{PageResult, SignedInRequest};
use super::texts;
use gatewren_gate::owner_actions::{HumanDuration, granted_words, is_broad, takes_command};
use gatewren_store::vault::{Change, GrantBound, hex};

/// The values of the form's scope field.
const EXACT: &str = "exact";
const TARGET: &str = "target";
const PREFIX: &str = "prefix";
const BROAD: &str = "broad";

/// The grant that the owner requests with a change.
#[derive(Debug, Clone)]
pub struct GrantFormValues {
    /// The calls that it covers.
    pub bound: GrantBound,
    /// Its duration.
    pub span: HumanDuration,
    /// Whether the owner has confirmed that it covers every call of the tool.
    is_confirmed: bool,
}

impl GrantFormValues {
    /// Reads the requested grant from the form.
    pub fn of(asked: &SignedInRequest<'_>, change: &Change) -> Result<Self, PageError> {
        let field = |name: &str| asked.visit.field(name).unwrap_or_default();
        let bound = match field("scope").as_str() {
            EXACT => GrantBound::Arguments(change.arguments_sha256),
            PREFIX if takes_command(&change.tool) => GrantBound::Prefix(field("prefix")),
            TARGET if change.target.is_some() => GrantBound::Any,
            BROAD if change.target.is_none() => GrantBound::Any,
            _ => return Err(PageError::Refused(texts::NO_SUCH_ACTION.to_owned())),
        };
        Ok(Self {
            bound,
            span: field("span").parse()?,
            is_confirmed: field("sure") == "yes",
        })
    }

    /// Whether the owner must still confirm that it covers every call.
    pub fn needs_second_step(&self, change: &Change) -> bool {
        is_broad(change.target.as_deref(), &self.bound) && !self.is_confirmed
    }
}

/// Renders the form's part for a grant. The default is narrow: the target of the change, or exactly this call if it
/// has no target.
pub fn fields(change: &Change) -> Markup {
    let (target, tool) = (change.target.as_deref(), change.tool.as_str());
    let id = |name: &str| format!("{name}-{}", change.id);
    let any = granted_words(tool, target, &GrantBound::Any);
    html! {
        div class="row" {
            div class="note" {
                label for=(id("scope")) { (texts::GRANT_WHAT) }
                select id=(id("scope")) name="scope" {
                    @if target.is_some() { option value=(TARGET) { (any) } }
                    option value=(EXACT) { (texts::GRANT_EXACT) }
                    @if takes_command(tool) { option value=(PREFIX) { (texts::GRANT_PREFIX) } }
                    @if target.is_none() { option value=(BROAD) { (any) } }
                }
            }
            @if takes_command(tool) {
                div class="note" {
                    label for=(id("prefix")) { (texts::GRANT_WORDS) }
                    input type="text" id=(id("prefix")) name="prefix" maxlength="256" autocomplete="off";
                }
            }
            div {
                label for=(id("span")) { (texts::GRANT_FOR) }
                select id=(id("span")) name="span" {
                    @for (span, words) in texts::SPANS { option value=(span) { (words) } }
                }
            }
            button name="do" value="grant" class="plain" { (texts::APPROVE_AND_GRANT) }
        }
        p class="soft" { (texts::GRANT_HOW) }
    }
}

/// Renders the confirmation of a grant for every call of a tool.
pub fn second_step(asked: &SignedInRequest<'_>, change: &Change, agent: &Markup) -> PageResult {
    let field = |name: &str| asked.visit.field(name).unwrap_or_default();
    let span = field("span");
    let known = texts::SPANS.iter().find(|(known, _)| *known == span);
    let (_, time) = known.ok_or_else(|| PageError::Refused(texts::NO_SUCH_ACTION.to_owned()))?;
    let what = granted_words(&change.tool, None, &GrantBound::Any);
    let content = html! {
        h1 { (texts::SURE) }
        (notice(&format!("{what}, {} {time}", texts::SURE_FOR), true))
        p { (texts::SURE_AGENT) " " (agent) ". " (texts::SURE_HOW) }
        form method="post" action=(path(change)) {
            (proof(asked.session))
            input type="hidden" name="seen" value=(hex(&change.binding()));
            input type="hidden" name="note" value=(field("note"));
            input type="hidden" name="scope" value=(BROAD);
            input type="hidden" name="span" value=(span);
            input type="hidden" name="sure" value="yes";
            div class="row" {
                button name="do" value="grant" class="bad" { (texts::SURE_YES) }
                a class="button plain" href=(path(change)) { (texts::SURE_NO) }
            }
        }
    };
    asked.page(Tab::Inbox, texts::SURE, false, content)
}
