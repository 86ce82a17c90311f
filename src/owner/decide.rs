//! The owner's word on changes, from a form that showed them.

use super::site::{Asked, Made, done};
use super::trouble::Trouble;
use super::words;
use crate::deeds::{self, Span, Verb, rule};
use crate::vault::{Change, hex};

/// The longest note; more is refused, for the agent reads all of it.
const MAX_NOTE: usize = 500;

/// Decides on one.
pub async fn one(asked: &Asked<'_>, id: &str) -> Made {
    let visit = asked.visit;
    let change = shown(asked, id, &visit.field("seen").unwrap_or_default())?;
    let note = visit.field("note").filter(|note| !note.trim().is_empty());
    if note.as_ref().is_some_and(|note| note.len() > MAX_NOTE) {
        return Err(Trouble::Refused(words::LONG_NOTE.to_owned()));
    }
    let word = visit.field("do").unwrap_or_default();
    let verb = match word.as_str() {
        "approve" | "grant" => Verb::Approve,
        "reject" => Verb::Reject,
        _ => return Err(Trouble::Refused(words::NO_SUCH_DEED.to_owned())),
    };
    // Before anything is decided.
    let span = match word.as_str() {
        "grant" => {
            let span = visit.field("span").unwrap_or_default();
            Some(span.parse::<Span>()?)
        }
        _ => None,
    };
    let (vault, hand) = (&asked.site.vault, asked.hand());
    let ruled = rule((vault, &hand), change, note.as_deref(), verb).await?;
    if let Some(why) = ruled.refused {
        return Err(Trouble::Refused(why));
    }
    if let Some(span) = span {
        let Change {
            agent,
            tool,
            target,
            ..
        } = &ruled.change;
        deeds::grant((vault, &hand), (agent, tool, target.as_deref()), span).await?;
    }
    let said = match verb {
        Verb::Approve => "approved",
        Verb::Reject => "rejected",
    };
    Ok(done(&format!("/owner/changes/{id}"), said))
}

/// Decides on all that the form showed; the first that cannot be decided on ends it.
pub async fn all(asked: &Asked<'_>) -> Made {
    let verb = match asked.visit.field("do").as_deref() {
        Some("approve") => Verb::Approve,
        Some("reject") => Verb::Reject,
        _ => return Err(Trouble::Refused(words::NO_SUCH_DEED.to_owned())),
    };
    let seen = asked.visit.fields("seen");
    // All are looked at before anything is decided.
    let changes: Result<Vec<Change>, Trouble> = seen
        .iter()
        .map(|seen| {
            let (id, binding) = seen.split_once(' ').ok_or(Trouble::Absent)?;
            shown(asked, id, binding)
        })
        .collect();
    for change in changes? {
        let ruled = rule((&asked.site.vault, &asked.hand()), change, None, verb).await?;
        if let Some(why) = ruled.refused {
            return Err(Trouble::Refused(format!("{}: {why}", ruled.change.id)));
        }
    }
    let said = match verb {
        Verb::Approve => "all-approved",
        Verb::Reject => "all-rejected",
    };
    Ok(done("/owner", said))
}

/// Ends a grant before its time.
pub async fn end_grant(asked: &Asked<'_>, id: &str) -> Made {
    if deeds::end_grant((&asked.site.vault, &asked.hand()), id).await? {
        Ok(done("/owner", "grant-ended"))
    } else {
        Err(Trouble::Absent)
    }
}

/// The change, if it is still the one that the form showed.
fn shown(asked: &Asked<'_>, id: &str, seen: &str) -> Result<Change, Trouble> {
    let change = asked.site.vault.changes().get(id)?.ok_or(Trouble::Absent)?;
    if hex(&change.binding()) == seen {
        Ok(change)
    } else {
        Err(Trouble::Refused(words::CHANGED_SINCE.to_owned()))
    }
}
