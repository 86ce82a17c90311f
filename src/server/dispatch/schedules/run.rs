//! One run of a schedule: the call, with the agent's permissions at creation and now.

use std::sync::Arc;

use super::check::refusal;
use crate::dispatch::call::{Call, ToolRequest};
use crate::dispatch::elicitation::surroundings;
use crate::dispatch::engine::Engine;
use crate::dispatch::host_rights::{is_on_host, judge_call};
use crate::dispatch::included::with_included;
use crate::dispatch::record::Record;
use crate::dispatch::reference;
use crate::dispatch::tasks::long_call;
use crate::dispatch::unattended::run_while_admitted;
use gatewren_base::sys::Requester;
use gatewren_base::telemetry::redact_text;
use gatewren_gate::auth::Principal;
use gatewren_gate::policy::{Verdict, as_of_creation, judge_scheduled};
use gatewren_store::vault::{RunEnd, RunOutcome, Schedule, StartedRun};
use gatewren_wire::protocol::InputAnswers;
use gatewren_wire::registry::{Answer, LongCall, Tool};

/// The maximum length of an error that is stored with a run, in characters.
const MAX_WORDS: usize = 300;

/// The explanation for a run that the policy does not allow.
const DENIED: &str =
    "Its agent's policy denies this call, now or when the schedule was created. Nothing was done.";

/// The explanation for a run that needs an approval which the schedule does not have.
const NEEDS_APPROVAL: &str = "Its agent's policy needs the owner's approval for this call, and the owner has not \
                              approved this schedule. Nothing was done.";

/// Makes the call of a run that was recorded.
pub(super) async fn carry_out(engine: &Arc<Engine>, begun: &StartedRun) -> RunEnd {
    let schedule = begun.schedule();
    let (who, tool) = match admit(engine, schedule) {
        Ok(admitted) => admitted,
        Err(words) => return failed(&words, None),
    };
    let Some(arguments) = schedule.arguments() else {
        return failed("Its arguments cannot be read. Nothing was done.", None);
    };
    let now = judge_call(engine, &who, &tool, &arguments);
    let then = as_of_creation(&who, schedule).map_or(Verdict::Deny, |then| {
        judge_call(engine, &then, &tool, &arguments)
    });
    let verdict = judge_scheduled(&then, &now, begun);
    let call = Call::unattended(&who);
    let long = long_call::of_tool(&tool);
    let cx = surroundings(&call, reference::next(), InputAnswers::default())
        .with_host_rights(is_on_host(engine, &tool, &arguments))
        .with_long_call(long.clone());
    let cx = with_included(cx, engine, &who, &tool);
    let request = ToolRequest {
        tool,
        arguments,
        reason: None,
        cx,
    };
    let record = match Record::begin(engine, &call, &request, &verdict).await {
        Ok(record) => record.of_long(long.clone()),
        Err(error) => {
            let words = format!(
                "The audit record could not be written ({}). Nothing was done.",
                error.message
            );
            return failed(&words, None);
        }
    };
    let ran_in = record.audit_id();
    let permit = match verdict {
        Verdict::Scheduled(permit, _) => permit,
        Verdict::Deny => {
            record.refuse(DENIED);
            return failed(DENIED, ran_in);
        }
        _ => {
            record.refuse(NEEDS_APPROVAL);
            return failed(NEEDS_APPROVAL, ran_in);
        }
    };
    let requester = Requester::Agent(who.agent_id().shared());
    let work = run_while_admitted(engine, &who, request, permit, requester);
    tokio::select! {
        biased;
        answer = work => end_of(answer, record),
        job = continues_as_job(engine, long.as_deref()) => RunEnd {
            outcome: RunOutcome::Unknown,
            words: Some(format!("The server stopped during this run, which continues as job {job}.")),
            ran_in,
        },
    }
}

/// Returns the agent with its current permissions, and the tool, if the schedule may still run.
fn admit(engine: &Engine, schedule: &Schedule) -> Result<(Principal, Arc<Tool>), String> {
    let inbox = engine.inbox.as_ref().ok_or("This server has no owner.")?;
    let who = inbox.agents.present(&schedule.agent);
    let who =
        who.map_err(|error| format!("Its agent has no access: {error}. Nothing was done."))?;
    if **who.space() != *schedule.space {
        return Err(
            "Its agent has another space than when the schedule was created. Nothing was done. Create it again."
                .to_owned(),
        );
    }
    let tool = engine.catalog.tool(&schedule.tool);
    let tool = tool.filter(|tool| tool.name() == schedule.tool && engine.catalog.has(tool));
    let tool = tool.ok_or(
        "This tool is no longer available; /etc/gatewren/helper.toml may disable it. Nothing was done.",
    )?;
    match refusal(tool) {
        Some(why) => Err(format!(
            "This tool cannot be scheduled: {why}. Nothing was done."
        )),
        None => Ok((who, tool.clone())),
    }
}

/// Waits until the server stops while a job does the work; returns the job.
async fn continues_as_job(engine: &Engine, long: Option<&LongCall>) -> String {
    let Some(long) = long else {
        return std::future::pending().await;
    };
    let _ = engine.stopping().wait_for(|stop| *stop).await;
    long.wait_for_start().await;
    long.deliver_id();
    long.job().to_owned()
}

fn end_of(answer: Result<(Answer, Option<u64>), String>, record: Record) -> RunEnd {
    let ran_in = record.audit_id();
    let (answer, revision) = match answer {
        Ok(answered) => answered,
        Err(words) => {
            record.fail(&words);
            return failed(&words, ran_in);
        }
    };
    record.end_with(&answer, revision);
    if !answer.failed {
        return RunEnd {
            outcome: RunOutcome::Ok,
            words: None,
            ran_in,
        };
    }
    failed(
        answer.first_text().unwrap_or("It failed without an error."),
        ran_in,
    )
}

/// The end of a run that failed, with the first line of the error.
fn failed(words: &str, ran_in: Option<String>) -> RunEnd {
    let line = words.lines().next().unwrap_or_default();
    RunEnd {
        outcome: RunOutcome::Failed,
        words: Some(redact_text(line).chars().take(MAX_WORDS).collect()),
        ran_in,
    }
}
