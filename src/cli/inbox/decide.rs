//! `gatewren inbox approve` and `reject`: the owner's decision on changes, and its result.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use super::super::console::output::{conclude, fail};
use super::super::owner_action::owner_context;
use super::ask::ask_yes;
use super::context::InboxContext;
use super::{look, print};
use gatewren_base::sys::now_ms;
use gatewren_gate::auth::CommandPrefix;
use gatewren_gate::owner_actions;
use gatewren_gate::owner_actions::{
    ChangeBatch, GrantRequest, HumanDuration, OwnerDecision, decide_change,
};
use gatewren_store::vault::{Change, ChangeStatus, GrantBound};

/// Exit code: a change could no longer be decided on.
const PAST: u8 = 3;

/// Exit code: a change was approved but not applied.
const NOT_DONE: u8 = 4;

/// How often to poll the vault while waiting, in addition to its notifications.
const LOOK: Duration = Duration::from_secs(1);

/// How long `approve --all-of` waits for the results. A change that still runs then is printed as approved.
const RESULTS_WITHIN: Duration = Duration::from_secs(10);

/// The error if the named agent has no pending change.
const NOTHING_WAITS: &str = "this agent has no pending changes";

/// Selects changes.
#[derive(Debug, clap::Args)]
pub struct ChangeSelectionArgs {
    /// The ids of the changes, or unique prefixes of them
    #[arg(
        value_name = "ID",
        required_unless_present = "all_of",
        conflicts_with = "all_of"
    )]
    changes: Vec<String>,
    /// All pending changes of this agent: its id or its name
    #[arg(long, value_name = "AGENT")]
    all_of: Option<String>,
    /// A note that the agent can read
    #[arg(long)]
    note: Option<String>,
}

/// What to approve, and how.
#[derive(Debug, clap::Args)]
pub struct InboxApproveArgs {
    #[command(flatten)]
    which: ChangeSelectionArgs,
    /// With --all-of: the digest that `show --all-of` printed; nothing is approved if something has changed since
    /// then
    #[arg(long, value_name = "DIGEST", requires = "all_of")]
    as_of: Option<String>,
    /// Allow the agent the same without asking for this long, such as 2h: the tool on the same target, or exactly
    /// this call if the tool has no target
    #[arg(long, value_name = "TIME")]
    grant: Option<HumanDuration>,
    /// With --grant: allow commands that begin with these words, such as "systemctl status"
    #[arg(long, value_name = "WORDS", requires = "grant")]
    prefix: Option<String>,
    /// With --grant: allow every call of the tool, whatever its arguments
    #[arg(long, requires = "grant", conflicts_with = "prefix")]
    broad: bool,
    /// Wait until each has ended, and print the result
    #[arg(long)]
    wait: bool,
}

/// What to reject.
#[derive(Debug, clap::Args)]
pub struct InboxRejectArgs {
    #[command(flatten)]
    which: ChangeSelectionArgs,
}

/// Approves changes.
pub async fn approve(
    inbox: &InboxContext,
    state: Option<&Path>,
    asked: &InboxApproveArgs,
    json: bool,
) -> ExitCode {
    match approve_change(inbox, state, asked).await {
        Ok(decided) => report(inbox, &decided, json, asked.wait),
        Err(words) => fail(&words),
    }
}

async fn approve_change(
    inbox: &InboxContext,
    state: Option<&Path>,
    asked: &InboxApproveArgs,
) -> Result<Vec<Decided>, String> {
    if let Some(prefix) = &asked.prefix {
        // Check the prefix before anything is decided.
        prefix.parse::<CommandPrefix>()?;
    }
    let which = &asked.which;
    let changes = match &which.all_of {
        Some(agent) => shown_first(inbox, state, agent, asked.as_of.as_deref())?,
        None => inbox.changes(&which.changes)?,
    };
    let mut decided = decide(
        inbox,
        changes,
        which.note.as_deref(),
        OwnerDecision::Approve,
    )
    .await?;
    if let Some(span) = asked.grant {
        grants(inbox, &mut decided, asked, span).await?;
    }
    if asked.wait {
        wait(inbox, &mut decided).await?;
    } else if which.all_of.is_some() {
        // One of them may change the target of the next, which is then pending again.
        if let Ok(ended) = timeout(RESULTS_WITHIN, wait(inbox, &mut decided)).await {
            ended?;
        }
    }
    Ok(decided)
}

/// All pending changes of an agent, after the owner has seen them: now on the terminal, or before, identified by
/// a digest.
fn shown_first(
    inbox: &InboxContext,
    state: Option<&Path>,
    agent: &str,
    as_of: Option<&str>,
) -> Result<Vec<Change>, String> {
    let id = inbox.agent(agent)?;
    let waiting = || ChangeBatch::all_of(&inbox.vault, &id);
    let shown = waiting()?;
    if shown.changes.is_empty() {
        return Err(NOTHING_WAITS.to_owned());
    }
    if let Some(digest) = as_of {
        return shown.check(digest).map(|()| shown.changes);
    }
    let question = format!("Approve all {} of them?", shown.changes.len());
    let otherwise = format!(
        "run `gatewren inbox show --all-of {id}`, and add --as-of with the digest on its last line"
    );
    ask_yes(&look::pages(inbox, state, &shown), &question, &otherwise)?;
    // Something may have changed while the owner was reading.
    let now = waiting()?;
    now.check(&shown.digest)?;
    Ok(now.changes)
}

/// Rejects changes.
pub async fn reject(inbox: &InboxContext, asked: &InboxRejectArgs, json: bool) -> ExitCode {
    let which = &asked.which;
    let changes = match &which.all_of {
        Some(agent) => inbox
            .agent(agent)
            .and_then(|id| ChangeBatch::all_of(&inbox.vault, &id))
            .map(|all| all.changes),
        None => inbox.changes(&which.changes),
    };
    let decided = match changes {
        Ok(changes) => decide(inbox, changes, which.note.as_deref(), OwnerDecision::Reject).await,
        Err(words) => Err(words),
    };
    match decided {
        Ok(decided) => report(inbox, &decided, json, false),
        Err(words) => fail(&words),
    }
}

/// The result of the decision on one change.
struct Decided {
    /// The change after the decision.
    change: Change,
    /// Why the decision was rejected, if it was.
    refused: Option<String>,
    /// The id of the grant that was created with it.
    grant: Option<String>,
}

async fn decide(
    inbox: &InboxContext,
    changes: Vec<Change>,
    note: Option<&str>,
    verb: OwnerDecision,
) -> Result<Vec<Decided>, String> {
    if changes.is_empty() {
        return Err(NOTHING_WAITS.to_owned());
    }
    let mut decided = Vec::new();
    for change in changes {
        let ruled = decide_change(&owner_context(&inbox.vault), change, note, verb).await?;
        decided.push(Decided {
            change: ruled.change,
            refused: ruled.refused,
            grant: None,
        });
    }
    Ok(decided)
}

async fn grants(
    inbox: &InboxContext,
    decided: &mut [Decided],
    asked: &InboxApproveArgs,
    span: HumanDuration,
) -> Result<(), String> {
    for one in decided.iter_mut().filter(|one| one.refused.is_none()) {
        let change = &one.change;
        let bound = match &asked.prefix {
            Some(prefix) => GrantBound::Prefix(prefix.clone()),
            None if asked.broad || change.target.is_some() => GrantBound::Any,
            None => GrantBound::Arguments(change.arguments_sha256),
        };
        let request = GrantRequest {
            agent: &change.agent,
            tool: &change.tool,
            target: change.target.as_deref(),
            bound,
            span,
        };
        let grant = owner_actions::grant(&owner_context(&inbox.vault), request).await?;
        one.grant = Some(grant.id);
    }
    Ok(())
}

/// Waits until each change has ended, or is pending again because its target has changed.
async fn wait(inbox: &InboxContext, decided: &mut [Decided]) -> Result<(), String> {
    let mut inbox_changes = inbox.vault.changes().watch_inbox();
    for one in decided.iter_mut().filter(|one| one.refused.is_none()) {
        loop {
            inbox_changes.mark_unchanged();
            let found = inbox.vault.changes().get(&one.change.id);
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
            // A lost notification delays this by a second.
            let _ = timeout(LOOK, inbox_changes.changed()).await;
        }
    }
    Ok(())
}

fn report(inbox: &InboxContext, decided: &[Decided], json: bool, waited: bool) -> ExitCode {
    let exit = conclude(Ok(if json {
        Value::Array(decided.iter().map(|one| as_json(inbox, one)).collect()).to_string()
    } else {
        let lines: Vec<String> = decided.iter().map(|one| words(inbox, one)).collect();
        lines.join("\n")
    }));
    let is_done = |one: &Decided| match one.change.status {
        ChangeStatus::Applied => true,
        ChangeStatus::Approved | ChangeStatus::Running | ChangeStatus::Rejected => !waited,
        _ => false,
    };
    if decided.iter().any(|one| one.refused.is_some()) {
        ExitCode::from(PAST)
    } else if !decided.iter().all(is_done) {
        ExitCode::from(NOT_DONE)
    } else {
        exit
    }
}

fn as_json(inbox: &InboxContext, one: &Decided) -> Value {
    let mut value = print::common(inbox, &one.change);
    if let Some(object) = value.as_object_mut() {
        object.insert("refused".into(), json!(one.refused));
        object.insert("grant".into(), json!(one.grant));
    }
    value
}

fn words(inbox: &InboxContext, one: &Decided) -> String {
    if let Some(refused) = &one.refused {
        return format!("{} is unchanged: {refused}", one.change.id);
    }
    let grant = one.grant.as_ref();
    let note = grant.map_or_else(String::new, |grant| format!(" (grant {grant})"));
    print::result_sentence(inbox, &one.change, &note)
}
