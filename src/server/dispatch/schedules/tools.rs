//! `schedule_*`: tools for the schedules that an agent has created.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::check::name_taken;
use super::times::parse_times;
use super::view::{ListedSchedules, ScheduleView};
use crate::dispatch::reference;
use gatewren_base::sys::{Calendar, now_ms};
use gatewren_store::vault::{
    MAX_SCHEDULES_OF_AGENT, NewSchedule, Schedule, ScheduleCreation, Vault, VaultError,
};
use gatewren_wire::registry::{
    Answer, Cx, Interruption, Result, Risk, ScheduledCall, Scope, ToolError, Toolset,
};

/// The maximum length of a name, in characters.
const MAX_NAME_CHARS: usize = 64;

/// The toolset.
pub fn schedule_tools(vault: Arc<Vault>) -> Toolset<Vault> {
    Toolset::new(vault)
        .with_name("schedules")
        // The answers explain themselves: with their schemas, the list of operate would be 4 kB longer.
        .answering("schedule_create", Risk::Persist, create)
        .about(Scope::Within)
        .checks_calls()
        .titled("Schedule a call")
        .answering("schedule_list", Risk::Read, list)
        .about(Scope::Within)
        .titled("List schedules")
        .answering("schedule_pause", Risk::Disrupt, pause)
        .about(Scope::Within)
        .titled("Pause or resume a schedule")
        .answering("schedule_delete", Risk::Disrupt, delete)
        .about(Scope::Within)
        .titled("Delete a schedule")
}

/// Call a tool at times, such as a backup every night. Returns the next times; `schedule_list` shows the runs.
/// Commands and calls with secrets cannot be scheduled.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Create {
    /// A unique name.
    #[serde(deserialize_with = "read_name")]
    name: String,
    /// The tool to call.
    tool: String,
    /// Its arguments.
    #[serde(default)]
    arguments: Map<String, Value>,
    /// The times in systemd's calendar syntax, local time: `*-*-* 03:00`, `Mon..Fri 02:30`.
    #[serde(deserialize_with = "read_times")]
    #[schemars(with = "String")]
    at: Calendar,
    /// Whether to make up once for missed runs.
    #[serde(default = "yes")]
    catch_up: bool,
}

fn yes() -> bool {
    true
}

fn read_name<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<String, D::Error> {
    let name = String::deserialize(from)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " -_.".contains(c);
    if name.trim() == name
        && (1..=MAX_NAME_CHARS).contains(&name.len())
        && name.chars().all(is_plain)
    {
        return Ok(name);
    }
    Err(D::Error::custom(format!(
        "must be 1 to {MAX_NAME_CHARS} ASCII letters, digits, spaces or -_., with no space at the ends"
    )))
}

fn read_times<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Calendar, D::Error> {
    parse_times(&String::deserialize(from)?).map_err(D::Error::custom)
}

async fn create(vault: Arc<Vault>, asked: Create, cx: Cx) -> Result<Answer> {
    let call = ScheduledCall {
        tool: asked.tool.clone(),
        arguments: asked.arguments.clone(),
    };
    let checked = cx.check_call(call).await?;
    let first = asked.at.next_after(now_ms());
    let next_ms = first.ok_or_else(|| ToolError::new("the times are in the past"))?;
    let caller = cx.caller();
    let new = NewSchedule {
        agent: caller.agent.to_string(),
        space: caller.space.to_string(),
        name: asked.name.clone(),
        tool: asked.tool,
        target: checked.target,
        arguments: asked.arguments,
        at: asked.at.as_str().to_owned(),
        catch_up: asked.catch_up,
        preset: checked.preset,
        overrides: checked.overrides,
        approval: checked.approval,
        next_ms,
    };
    match vault.schedules().add(new).await.map_err(|e| unreadable(&e))? {
        ScheduleCreation::New(schedule) => {
            Ok(Answer::data(&ScheduleView::of(&schedule, &[]))?)
        }
        ScheduleCreation::NameTaken => Err(name_taken(&asked.name).into()),
        ScheduleCreation::NoRoom => Err(ToolError::new(format!(
            "there is no room for another schedule: an agent has at most {MAX_SCHEDULES_OF_AGENT}, ended ones included"
        ))
        .hint("Delete one that is no longer needed with schedule_delete.")
        .into()),
    }
}

/// List your schedules with their times and the result of the last run. With `schedule`, show one in full, with its
/// last ten runs. `schedule_create` adds one, `schedule_delete` removes one.
///
/// Schedules of other agents are not shown.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {
    /// The id or name of one schedule.
    schedule: Option<String>,
}

async fn list(vault: Arc<Vault>, List { schedule }: List, cx: Cx) -> Result<Answer> {
    let agent = &cx.caller().agent;
    let Some(named) = schedule else {
        let own = ListedSchedules::of(&vault, agent).map_err(|cause| unreadable(&cause))?;
        return Ok(Answer::data(&own)?);
    };
    let one = find(&vault, &cx, &named)?;
    let runs = vault.schedules().runs(&one.id);
    let view = ScheduleView::of(&one, &runs.map_err(|cause| unreadable(&cause))?);
    Ok(Answer::data(&ListedSchedules {
        schedules: vec![view],
    })?)
}

/// Pause one of your schedules, so that it does not run, or resume it with `paused` false. `schedule_delete` removes
/// it.
///
/// Returns the schedule. Missed times are not made up for.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Pause {
    /// The id or name of the schedule.
    schedule: String,
    /// Whether it is paused.
    #[serde(default = "yes")]
    paused: bool,
}

async fn pause(vault: Arc<Vault>, Pause { schedule, paused }: Pause, cx: Cx) -> Result<Answer> {
    let one = find(&vault, &cx, &schedule)?;
    let done = vault.schedules().pause(&one.id, paused).await;
    if !done.map_err(|cause| unreadable(&cause))? {
        return Err(ToolError::new("the schedule has ended")
            .hint("Create a new one with schedule_create.")
            .into());
    }
    let one = find(&vault, &cx, &one.id)?;
    Ok(Answer::data(&ScheduleView::of(&one, &[]))?)
}

/// Delete one of your schedules with the list of its runs, and return what was deleted. `schedule_pause` only pauses
/// it.
///
/// A run in progress is not stopped.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Delete {
    /// The id or name of the schedule.
    schedule: String,
}

async fn delete(vault: Arc<Vault>, Delete { schedule }: Delete, cx: Cx) -> Result<Answer> {
    let one = find(&vault, &cx, &schedule)?;
    let deleted = vault.schedules().delete(&one.id).await;
    if deleted.map_err(|cause| unreadable(&cause))? {
        Ok(Answer::data(&ScheduleView::of(&one, &[]))?)
    } else {
        Err(absent(&schedule))
    }
}

fn find(vault: &Vault, cx: &Cx, named: &str) -> Result<Schedule> {
    let found = vault.schedules().find_of(&cx.caller().agent, named);
    let found = found.map_err(|cause| unreadable(&cause))?;
    found.ok_or_else(|| absent(named))
}

/// The same error for a schedule that never existed and for one of another agent.
fn absent(named: &str) -> Interruption {
    let shown: String = named.chars().take(64).collect();
    let error = ToolError::new(format!("You have no schedule {shown}."));
    ToolError {
        absent: true,
        ..error.hint("schedule_list lists your schedules.")
    }
    .into()
}

fn unreadable(cause: &VaultError) -> Interruption {
    let reference = reference::next();
    tracing::error!(%cause, %reference, "cannot access the schedules");
    let words = format!("The schedules cannot be accessed at the moment (reference {reference}).");
    ToolError {
        retry: true,
        ..ToolError::new(words)
    }
    .into()
}
