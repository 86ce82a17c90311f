//! `gatewren watch`: lists, shows and deletes the watches of all agents.

use std::process::ExitCode;

use clap::Subcommand;
use serde_json::{Value, json};

use super::console::moment::moment_of;
use super::console::selected::SelectedKind;
use super::console::table::{field_lines, table};
use super::console::target::SubcommandArgs;
use super::inbox::{InboxContext, run_on_vault};
use gatewren_gate::owner_actions::sanitize;
use gatewren_store::vault::{StoredWatch, WatchRef};
use gatewren_tools::watches::WatchView;

/// The column headings of a list.
const HEAD: [&str; 7] = ["id", "phase", "since", "agent", "name", "watches", "seen"];

/// The maximum number of characters of a cell; the rest is cut.
const IN_A_CELL: usize = 60;

const WATCH: SelectedKind = SelectedKind {
    tag: "watch_",
    noun: "watch",
    list: "watch list",
};

/// The arguments of the command.
pub type WatchArgs = SubcommandArgs<WatchSubcommand>;

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum WatchSubcommand {
    /// List the watches of all agents
    List {
        /// Only watches of this agent: its id or its name
        #[arg(long)]
        agent: Option<String>,
        /// Only watches that have fired and have not recovered
        #[arg(long)]
        fired: bool,
    },
    /// Show a watch
    Show(NamedWatch),
    /// Delete a watch; nothing is sent about it any more
    Delete(NamedWatch),
}

/// Selects a watch.
#[derive(Debug, clap::Args)]
pub struct NamedWatch {
    /// The id of the watch, or a unique prefix of it
    #[arg(value_name = "ID")]
    watch: String,
}

/// Runs the command; it needs no running server.
pub fn run(args: &WatchArgs) -> ExitCode {
    let json = args.json;
    run_on_vault(&args.place, async |context| match &args.subcommand {
        WatchSubcommand::List { agent, fired } => list(context, agent.as_deref(), *fired, json),
        WatchSubcommand::Show(named) => {
            find(context, named).map(|watch| page(context, &watch, json))
        }
        WatchSubcommand::Delete(named) => {
            let watch = delete(context, named).await?;
            Ok(if json {
                as_json(context, &watch).to_string()
            } else {
                format!("{} is deleted", watch.id)
            })
        }
    })
}

fn list(
    context: &InboxContext,
    agent: Option<&str>,
    fired: bool,
    json: bool,
) -> Result<String, String> {
    let agent = agent.map(|named| context.agent(named)).transpose()?;
    let mut all = all(context)?;
    all.retain(|watch| {
        let has_fired = || WatchView::of(watch).is_some_and(|view| view.phase == "fired");
        agent.as_ref().is_none_or(|agent| *agent == watch.agent) && (!fired || has_fired())
    });
    if json {
        let rows = all.iter().map(|one| as_json(context, one));
        return Ok(Value::Array(rows.collect()).to_string());
    }
    if all.is_empty() {
        return Ok("there are no watches".to_owned());
    }
    let mut rows = vec![HEAD.map(str::to_owned)];
    rows.extend(all.iter().map(|one| cells(context, one)));
    Ok(table(&rows))
}

async fn delete(context: &InboxContext, named: &NamedWatch) -> Result<StoredWatch, String> {
    let id = find(context, named)?.id;
    let removed = context.vault.watches().remove(WatchRef::Id(id)).await;
    let removed = removed.map_err(|e| e.to_string())?;
    removed.ok_or_else(|| format!("the watch {:?} was deleted at the same time", named.watch))
}

fn all(context: &InboxContext) -> Result<Vec<StoredWatch>, String> {
    context.vault.watches().list().map_err(|e| e.to_string())
}

/// Returns the watch with this id, or the only one whose id has this prefix.
fn find(context: &InboxContext, named: &NamedWatch) -> Result<StoredWatch, String> {
    let named = &named.watch;
    let found = all(context)?
        .into_iter()
        .filter(|watch| WATCH.begins(&watch.id, named));
    WATCH.only(found, named)
}

/// A watch as a row.
fn cells(context: &InboxContext, watch: &StoredWatch) -> [String; 7] {
    let cut = |text: &str| sanitize(text).chars().take(IN_A_CELL).collect::<String>();
    let view = WatchView::of(watch);
    let text = |of: fn(&WatchView) -> &str| view.as_ref().map_or("-", of);
    [
        WATCH.shown(&watch.id),
        text(|view| view.phase).to_owned(),
        moment_of(text(|view| view.since.as_deref().unwrap_or("-"))),
        cut(context.name(&watch.agent)),
        cut(&watch.name),
        cut(text(|view| &view.watches)),
        cut(text(|view| &view.seen)),
    ]
}

/// A watch as JSON: the fields of `watch_list`, and its agent.
fn as_json(context: &InboxContext, watch: &StoredWatch) -> Value {
    let view = WatchView::of(watch);
    let mut value = view.map_or_else(|| json!({ "id": watch.id }), |view| json!(view));
    if let Some(object) = value.as_object_mut() {
        object.insert("agent".into(), json!(watch.agent));
        object.insert("agent_name".into(), json!(context.name(&watch.agent)));
    }
    value
}

/// A watch in full, one field a line.
fn page(context: &InboxContext, watch: &StoredWatch, json: bool) -> String {
    let value = as_json(context, watch);
    if json {
        return value.to_string();
    }
    field_lines(&value)
}
