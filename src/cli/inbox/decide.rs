//! `gatewren inbox approve` and `reject`: the owner's word on changes, and what came of it.

use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::deed::hand;
use super::super::say::{conclude, fail};
use super::desk::Desk;
use super::print;
use crate::deeds::{self, Span, Verb, rule};
use crate::sys::now_ms;
use crate::vault::{Change, ChangeStatus};

/// One could not be decided on any more.
const PAST: u8 = 3;

/// One was approved and then not done.
const NOT_DONE: u8 = 4;

/// How often the vault is looked at while waiting, beside its own notices.
const LOOK: Duration = Duration::from_secs(1);

/// Which changes.
#[derive(Debug, clap::Args)]
pub struct Which {
    /// Their ids, or the beginnings of them
    #[arg(
        value_name = "ID",
        required_unless_present = "all_of",
        conflicts_with = "all_of"
    )]
    changes: Vec<String>,
    /// All that wait of this agent: its id or its name
    #[arg(long, value_name = "AGENT")]
    all_of: Option<String>,
    /// A word on it, which the agent can read
    #[arg(long)]
    note: Option<String>,
}

/// What is approved, and how.
#[derive(Debug, clap::Args)]
pub struct Approve {
    #[command(flatten)]
    which: Which,
    /// Allow the same agent the same tool on the same target for so long, such as 2h, without asking
    #[arg(long, value_name = "TIME")]
    grant: Option<Span>,
    /// Wait until each has ended, and say how
    #[arg(long)]
    wait: bool,
}

/// What is rejected.
#[derive(Debug, clap::Args)]
pub struct Reject {
    #[command(flatten)]
    which: Which,
}

/// Approves.
pub async fn approve(desk: &Desk, asked: &Approve, json: bool) -> ExitCode {
    let decided = decide(desk, &asked.which, Verb::Approve).await;
    let mut decided = match decided {
        Ok(decided) => decided,
        Err(words) => return fail(&words),
    };
    if let Some(span) = asked.grant
        && let Err(words) = grants(desk, &mut decided, span).await
    {
        return fail(&words);
    }
    if asked.wait
        && let Err(words) = wait(desk, &mut decided).await
    {
        return fail(&words);
    }
    report(desk, &decided, json, asked.wait)
}

/// Rejects.
pub async fn reject(desk: &Desk, asked: &Reject, json: bool) -> ExitCode {
    match decide(desk, &asked.which, Verb::Reject).await {
        Ok(decided) => report(desk, &decided, json, false),
        Err(words) => fail(&words),
    }
}

/// What became of one change here.
struct Decided {
    /// As it stands.
    change: Change,
    /// Why the decision does not hold, if it does not.
    refused: Option<String>,
    /// The grant that was given with it.
    grant: Option<String>,
}

/// Nothing is decided on unless every change that was named is there.
async fn decide(desk: &Desk, which: &Which, verb: Verb) -> Result<Vec<Decided>, String> {
    let mut changes = Vec::new();
    if let Some(agent) = &which.all_of {
        let open = desk.vault.changes().list_of(&desk.agent(agent)?, true);
        let mut open = open.map_err(|e| e.to_string())?;
        open.retain(|change| change.status == ChangeStatus::Pending);
        // In the order in which they were proposed.
        open.reverse();
        changes.extend(open);
    }
    for named in &which.changes {
        changes.push(desk.change(named)?);
    }
    if changes.is_empty() {
        return Err("nothing of this agent waits".to_owned());
    }
    let mut decided = Vec::new();
    for change in changes {
        let ruled = rule((&desk.vault, &hand()), change, which.note.as_deref(), verb).await?;
        decided.push(Decided {
            change: ruled.change,
            refused: ruled.refused,
            grant: None,
        });
    }
    Ok(decided)
}

async fn grants(desk: &Desk, decided: &mut [Decided], span: Span) -> Result<(), String> {
    for one in decided.iter_mut().filter(|one| one.refused.is_none()) {
        let Change {
            agent,
            tool,
            target,
            ..
        } = &one.change;
        let about = (agent.as_str(), tool.as_str(), target.as_deref());
        let grant = deeds::grant((&desk.vault, &hand()), about, span).await?;
        one.grant = Some(grant.id);
    }
    Ok(())
}

/// Waits until each has ended, or waits for the owner again because its target has moved.
async fn wait(desk: &Desk, decided: &mut [Decided]) -> Result<(), String> {
    let mut bell = desk.vault.changes().bell();
    for one in decided.iter_mut().filter(|one| one.refused.is_none()) {
        loop {
            bell.mark_unchanged();
            let found = desk.vault.changes().get(&one.change.id);
            let Some(change) = found.map_err(|e| e.to_string())? else {
                break;
            };
            one.change = change;
            let begins = one.change.status == ChangeStatus::Approved;
            let over = begins && one.change.expires_ms <= now_ms();
            let again = one.change.status == ChangeStatus::Pending;
            if over || again || !one.change.status.is_open() {
                break;
            }
            // A notice that is lost costs a second.
            let _ = tokio::time::timeout(LOOK, bell.changed()).await;
        }
    }
    Ok(())
}

fn report(desk: &Desk, decided: &[Decided], json: bool, waited: bool) -> ExitCode {
    let said = conclude(Ok(if json {
        Value::Array(decided.iter().map(|one| as_json(desk, one)).collect()).to_string()
    } else {
        let lines: Vec<String> = decided.iter().map(|one| words(desk, one)).collect();
        lines.join("\n")
    }));
    let done = |one: &Decided| one.change.status == ChangeStatus::Applied;
    if decided.iter().any(|one| one.refused.is_some()) {
        ExitCode::from(PAST)
    } else if waited && !decided.iter().all(done) {
        ExitCode::from(NOT_DONE)
    } else {
        said
    }
}

fn as_json(desk: &Desk, one: &Decided) -> Value {
    let mut value = print::common(desk, &one.change);
    if let Some(object) = value.as_object_mut() {
        object.insert("refused".into(), json!(one.refused));
        object.insert("grant".into(), json!(one.grant));
    }
    value
}

fn words(desk: &Desk, one: &Decided) -> String {
    if let Some(refused) = &one.refused {
        return format!("{} is left as it is: {refused}", one.change.id);
    }
    let said = print::said(desk, &one.change);
    match &one.grant {
        Some(grant) => format!("{said} (with {grant})"),
        None => said,
    }
}
