//! The owner's decisions on changes, from a form that showed them.

use std::time::Duration;

use tokio::time::sleep;

use super::change_parts::{DecisionPlace, names, of};
use super::confirm::confirm;
use super::frame::redirect;
use super::grant_form::{GrantFormValues, second_step};
use super::inbox_order::InboxPage;
use super::inbox_result::DECIDED;
use super::page_error::PageError;
use super::site::{PageResult, SignedInRequest, redirect_with_notice};
use super::texts;
use super::typed_name::confirm_name;
use gatewren_gate::auth::CommandPrefix;
use gatewren_gate::owner_actions;
use gatewren_gate::owner_actions::{DecidedChange, GrantRequest, OwnerDecision, decide_change};
use gatewren_store::vault::{Change, GrantBound, hex};

/// The maximum length of a note; a longer one is rejected, because the agent reads all of it.
const MAX_NOTE: usize = 500;

/// How long an approval in the inbox waits for the end of the call.
const PATIENCE: Duration = Duration::from_secs(2);

/// Decides on one change.
pub async fn one(asked: &SignedInRequest<'_>, id: &str) -> PageResult {
    let visit = asked.visit;
    let change = load_unchanged(asked, id, &visit.field("seen").unwrap_or_default())?;
    let note = visit.field("note").filter(|note| !note.trim().is_empty());
    if note.as_ref().is_some_and(|note| note.len() > MAX_NOTE) {
        return Err(PageError::Refused(texts::LONG_NOTE.to_owned()));
    }
    let word = visit.field("do").unwrap_or_default();
    let verb = match word.as_str() {
        "approve" | "grant" => OwnerDecision::Approve,
        "reject" => OwnerDecision::Reject,
        _ => return Err(PageError::Refused(texts::NO_SUCH_ACTION.to_owned())),
    };
    if verb == OwnerDecision::Approve
        && let Some(page) = confirm_name(asked, &change)?
    {
        return Ok(page);
    }
    // Before anything is decided.
    let wanted = match word.as_str() {
        "grant" => Some(GrantFormValues::of(asked, &change)?),
        _ => None,
    };
    if let Some(wanted) = &wanted {
        if wanted.needs_second_step(&change) {
            let agent = of(&names(asked.site)?, &change.agent);
            return second_step(asked, &change, &agent);
        }
        if let GrantBound::Prefix(words) = &wanted.bound {
            words.parse::<CommandPrefix>()?;
        }
        // A single approval runs the call that was just shown, once. A grant runs calls that the owner has not
        // seen.
        if let Some(page) = confirm(asked).await? {
            return Ok(page);
        }
    }
    let owner = asked.owner_context();
    let decided = decide_change(&owner, change, note.as_deref(), verb).await?;
    if let Some(why) = decided.refused {
        return Err(PageError::Refused(why));
    }
    if let Some(wanted) = wanted {
        let request = GrantRequest {
            agent: &decided.change.agent,
            tool: &decided.change.tool,
            target: decided.change.target.as_deref(),
            bound: wanted.bound,
            span: wanted.span,
        };
        owner_actions::grant(&owner, request).await?;
    }
    answer(asked, id, verb).await
}

/// Redirects to the page that the form was on, which shows the result.
async fn answer(asked: &SignedInRequest<'_>, id: &str, verb: OwnerDecision) -> PageResult {
    let place = asked.visit.field(DecisionPlace::FIELD);
    if place.as_deref() == Some(DecisionPlace::Inbox.word()) {
        wait_for_end(asked, id).await?;
        return Ok(redirect(&format!("/owner/inbox?{DECIDED}={id}")));
    }
    let notice = match verb {
        OwnerDecision::Approve => "approved",
        OwnerDecision::Reject => "rejected",
    };
    Ok(redirect_with_notice(
        &format!("/owner/changes/{id}"),
        notice,
    ))
}

/// Waits until a change has ended, but not for long: without scripts, the page that follows does not change by itself.
async fn wait_for_end(asked: &SignedInRequest<'_>, id: &str) -> Result<(), PageError> {
    let changes = asked.site.vault.changes();
    let mut inbox_changes = changes.watch_inbox();
    let patience = sleep(PATIENCE);
    tokio::pin!(patience);
    loop {
        inbox_changes.mark_unchanged();
        if !changes
            .get(id)?
            .is_some_and(|change| change.status.is_open())
        {
            return Ok(());
        }
        tokio::select! {
            () = &mut patience => return Ok(()),
            end = inbox_changes.changed() => if end.is_err() { return Ok(()) },
        }
    }
}

/// Decides on several changes of an agent: approves those that one page of the inbox shows in full, or rejects
/// those that the form names.
pub async fn together(asked: &SignedInRequest<'_>) -> PageResult {
    match asked.visit.field("do").as_deref() {
        Some("approve") => approve_page(asked).await,
        Some("reject") => reject_all(asked).await,
        _ => Err(PageError::Refused(texts::NO_SUCH_ACTION.to_owned())),
    }
}

/// Approves the changes that the page showed. The page is built again; if its digest differs, nothing is approved.
async fn approve_page(asked: &SignedInRequest<'_>) -> PageResult {
    let field = |name: &str| asked.visit.field(name).unwrap_or_default();
    let number: usize = field("page").parse().unwrap_or(1);
    let open = asked.site.vault.changes().list(true)?;
    let batch = InboxPage::of(asked.site, open, number)?.batch(&field("agent"));
    if batch.changes.is_empty() || batch.check(&field("digest")).is_err() {
        return Ok(redirect(&format!(
            "/owner/inbox?page={number}&said=not-as-shown"
        )));
    }
    let owner = asked.owner_context();
    let decided = batch.decide(&owner, None, OwnerDecision::Approve);
    finish(decided.await?, "all-approved")
}

/// Rejects the changes that the form names, on any page.
async fn reject_all(asked: &SignedInRequest<'_>) -> PageResult {
    let seen = asked.visit.fields("seen");
    // All of them are checked before the first decision.
    let changes: Result<Vec<Change>, PageError> = seen
        .iter()
        .map(|seen| {
            let (id, binding) = seen.split_once(' ').ok_or(PageError::Absent)?;
            load_unchanged(asked, id, binding)
        })
        .collect();
    let owner = asked.owner_context();
    let mut decided = Vec::new();
    for change in changes? {
        decided.push(decide_change(&owner, change, None, OwnerDecision::Reject).await?);
    }
    finish(decided, "all-rejected")
}

fn finish(decided: Vec<DecidedChange>, notice: &str) -> PageResult {
    for one in decided {
        if let Some(why) = one.refused {
            return Err(PageError::Refused(format!("{}: {why}", one.change.id)));
        }
    }
    Ok(redirect_with_notice("/owner/inbox", notice))
}

/// Ends a grant early.
pub async fn end_grant(asked: &SignedInRequest<'_>, id: &str) -> PageResult {
    if owner_actions::end_grant(&asked.owner_context(), id).await? {
        Ok(redirect_with_notice("/owner/inbox", "grant-ended"))
    } else {
        Err(PageError::Absent)
    }
}

/// Returns the change, if it is unchanged since the form showed it.
fn load_unchanged(asked: &SignedInRequest<'_>, id: &str, seen: &str) -> Result<Change, PageError> {
    let change = asked
        .site
        .vault
        .changes()
        .get(id)?
        .ok_or(PageError::Absent)?;
    if hex(&change.binding()) == seen {
        Ok(change)
    } else {
        Err(PageError::Refused(texts::CHANGED_SINCE.to_owned()))
    }
}
