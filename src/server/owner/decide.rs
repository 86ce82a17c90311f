//! The owner's decisions on changes, from a form that showed them.

use super::change_parts::{names, of};
use super::confirm::confirm;
use super::frame::see;
use super::grant_form::{WantedGrant, second_step};
use super::inbox_order::InboxPage;
use super::page_error::Trouble;
use super::site::{Asked, Made, done};
use super::texts;
use gatewren_gate::auth::CommandPrefix;
use gatewren_gate::owner_actions;
use gatewren_gate::owner_actions::{GrantWish, Ruled, Verb, rule};
use gatewren_store::vault::{Change, GrantBound, hex};

/// The maximum length of a note; a longer one is rejected, because the agent reads all of it.
const MAX_NOTE: usize = 500;

/// Decides on one change.
pub async fn one(asked: &Asked<'_>, id: &str) -> Made {
    let visit = asked.visit;
    let change = shown(asked, id, &visit.field("seen").unwrap_or_default())?;
    let note = visit.field("note").filter(|note| !note.trim().is_empty());
    if note.as_ref().is_some_and(|note| note.len() > MAX_NOTE) {
        return Err(Trouble::Refused(texts::LONG_NOTE.to_owned()));
    }
    let word = visit.field("do").unwrap_or_default();
    let verb = match word.as_str() {
        "approve" | "grant" => Verb::Approve,
        "reject" => Verb::Reject,
        _ => return Err(Trouble::Refused(texts::NO_SUCH_DEED.to_owned())),
    };
    // Before anything is decided.
    let wanted = match word.as_str() {
        "grant" => Some(WantedGrant::of(asked, &change)?),
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
    let (vault, hand) = (&asked.site.vault, asked.hand());
    let ruled = rule((vault, &hand), change, note.as_deref(), verb).await?;
    if let Some(why) = ruled.refused {
        return Err(Trouble::Refused(why));
    }
    if let Some(wanted) = wanted {
        let wish = GrantWish {
            agent: &ruled.change.agent,
            tool: &ruled.change.tool,
            target: ruled.change.target.as_deref(),
            bound: wanted.bound,
            span: wanted.span,
        };
        owner_actions::grant((vault, &hand), wish).await?;
    }
    let said = match verb {
        Verb::Approve => "approved",
        Verb::Reject => "rejected",
    };
    Ok(done(&format!("/owner/changes/{id}"), said))
}

/// Decides on several changes of an agent: approves those that one page of the inbox shows in full, or rejects
/// those that the form names.
pub async fn together(asked: &Asked<'_>) -> Made {
    match asked.visit.field("do").as_deref() {
        Some("approve") => approve_page(asked).await,
        Some("reject") => reject_all(asked).await,
        _ => Err(Trouble::Refused(texts::NO_SUCH_DEED.to_owned())),
    }
}

/// Approves the changes that the page showed. The page is built again; if its digest differs, nothing is approved.
async fn approve_page(asked: &Asked<'_>) -> Made {
    let field = |name: &str| asked.visit.field(name).unwrap_or_default();
    let number: usize = field("page").parse().unwrap_or(1);
    let open = asked.site.vault.changes().list(true)?;
    let batch = InboxPage::of(asked.site, open, number)?.batch(&field("agent"));
    if batch.changes.is_empty() || batch.check(&field("digest")).is_err() {
        return Ok(see(&format!("/owner?page={number}&said=not-as-shown")));
    }
    let hand = asked.hand();
    let ruled = batch.decide((&asked.site.vault, &hand), None, Verb::Approve);
    finish(ruled.await?, "all-approved")
}

/// Rejects the changes that the form names, on any page.
async fn reject_all(asked: &Asked<'_>) -> Made {
    let seen = asked.visit.fields("seen");
    // All of them are checked before the first decision.
    let changes: Result<Vec<Change>, Trouble> = seen
        .iter()
        .map(|seen| {
            let (id, binding) = seen.split_once(' ').ok_or(Trouble::Absent)?;
            shown(asked, id, binding)
        })
        .collect();
    let mut ruled = Vec::new();
    for change in changes? {
        ruled.push(
            rule(
                (&asked.site.vault, &asked.hand()),
                change,
                None,
                Verb::Reject,
            )
            .await?,
        );
    }
    finish(ruled, "all-rejected")
}

fn finish(ruled: Vec<Ruled>, said: &str) -> Made {
    for one in ruled {
        if let Some(why) = one.refused {
            return Err(Trouble::Refused(format!("{}: {why}", one.change.id)));
        }
    }
    Ok(done("/owner", said))
}

/// Ends a grant early.
pub async fn end_grant(asked: &Asked<'_>, id: &str) -> Made {
    if owner_actions::end_grant((&asked.site.vault, &asked.hand()), id).await? {
        Ok(done("/owner", "grant-ended"))
    } else {
        Err(Trouble::Absent)
    }
}

/// Returns the change, if it is unchanged since the form showed it.
fn shown(asked: &Asked<'_>, id: &str, seen: &str) -> Result<Change, Trouble> {
    let change = asked.site.vault.changes().get(id)?.ok_or(Trouble::Absent)?;
    if hex(&change.binding()) == seen {
        Ok(change)
    } else {
        Err(Trouble::Refused(texts::CHANGED_SINCE.to_owned()))
    }
}
