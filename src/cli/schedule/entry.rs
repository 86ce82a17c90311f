//! The arguments of `gatewren schedule`, and its subcommands.

use std::process::ExitCode;

use clap::Subcommand;
use serde_json::{Value, json};

use super::super::console::table::table;
use super::super::console::target::SubcommandArgs;
use super::super::inbox::{InboxContext, run_on_vault};
use super::super::owner_action::owner_context;
use super::print::{self, SCHEDULE};
use gatewren_gate::owner_actions::{delete_schedule, pause_schedule, run_schedule};
use gatewren_store::vault::Schedule;

/// The arguments of the command.
pub type ScheduleArgs = SubcommandArgs<ScheduleSubcommand>;

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum ScheduleSubcommand {
    /// List the schedules of all agents, the oldest first
    List {
        /// Only schedules of this agent: its id or its name
        #[arg(long)]
        agent: Option<String>,
    },
    /// Show a schedule with its exact call and its last ten runs
    Show(Named),
    /// Ask the running server for a run now
    ///
    /// The call is judged and recorded as at its times. `show` has the result.
    Run(Named),
    /// Pause a schedule
    Pause(Named),
    /// Resume a paused schedule; missed times are not made up for
    Resume(Named),
    /// Delete a schedule with the list of its runs
    Delete(Named),
}

/// Selects a schedule.
#[derive(Debug, clap::Args)]
pub struct Named {
    /// The id of the schedule, a unique prefix of it, or its name if it is unique
    #[arg(value_name = "ID")]
    schedule: String,
}

/// Runs the command. Only `run` needs the server.
pub fn run(args: &ScheduleArgs) -> ExitCode {
    let json = args.json;
    run_on_vault(&args.place, async |context| match &args.subcommand {
        ScheduleSubcommand::List { agent } => list(context, agent.as_deref(), json),
        ScheduleSubcommand::Show(named) => show(context, named, json),
        ScheduleSubcommand::Run(named) => act(context, named, Action::Run, json).await,
        ScheduleSubcommand::Pause(named) => act(context, named, Action::Pause, json).await,
        ScheduleSubcommand::Resume(named) => act(context, named, Action::Resume, json).await,
        ScheduleSubcommand::Delete(named) => act(context, named, Action::Delete, json).await,
    })
}

fn list(context: &InboxContext, agent: Option<&str>, json: bool) -> Result<String, String> {
    let agent = agent.map(|named| context.agent(named)).transpose()?;
    let table_of_all = context.vault.schedules();
    let all = table_of_all.list_of(agent.as_deref());
    let all = all.map_err(|e| e.to_string())?;
    let runs = |one: &Schedule| table_of_all.runs(&one.id).map_err(|e| e.to_string());
    if json {
        let rows = all
            .iter()
            .map(|one| Ok(print::as_json(context, one, &runs(one)?)));
        let rows: Result<Vec<Value>, String> = rows.collect();
        return rows.map(|rows| Value::Array(rows).to_string());
    }
    if all.is_empty() {
        return Ok("there are no schedules".to_owned());
    }
    let mut rows = vec![print::HEAD.map(str::to_owned)];
    for one in &all {
        rows.push(print::cells(context, one, &runs(one)?));
    }
    Ok(table(&rows))
}

fn show(context: &InboxContext, named: &Named, json: bool) -> Result<String, String> {
    let one = find(context, named)?;
    let runs = context.vault.schedules().runs(&one.id);
    let runs = runs.map_err(|e| e.to_string())?;
    Ok(if json {
        print::as_json(context, &one, &runs).to_string()
    } else {
        print::page(context, &one, &runs)
    })
}

/// What to do with a schedule.
#[derive(Debug, Clone, Copy)]
enum Action {
    Run,
    Pause,
    Resume,
    Delete,
}

async fn act(
    context: &InboxContext,
    named: &Named,
    action: Action,
    json: bool,
) -> Result<String, String> {
    let one = find(context, named)?;
    let owner = owner_context(&context.vault);
    let (done, word) = match action {
        Action::Run => (run_schedule(&owner, &one.id).await?, "will run now"),
        Action::Pause => (pause_schedule(&owner, &one.id, true).await?, "is paused"),
        Action::Resume => (pause_schedule(&owner, &one.id, false).await?, "is resumed"),
        Action::Delete => (delete_schedule(&owner, &one.id).await?, "is deleted"),
    };
    if !done {
        return Err(format!(
            "{} is not active: it has ended, is paused, or was deleted",
            one.id
        ));
    }
    Ok(if json {
        json!({ "schedule": one.id, "status": word }).to_string()
    } else {
        format!("{} {word}", one.id)
    })
}

/// Returns the schedule with this id, the only one whose id has this prefix, or the only one with this name.
fn find(context: &InboxContext, named: &Named) -> Result<Schedule, String> {
    let named = &named.schedule;
    let all = context.vault.schedules().list();
    let all = all.map_err(|e| e.to_string())?;
    let found = all
        .into_iter()
        .filter(|one| SCHEDULE.begins(&one.id, named) || one.name == *named);
    SCHEDULE.only(found, named)
}
