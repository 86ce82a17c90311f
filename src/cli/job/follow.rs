//! `gatewren job wait`, `output` and `cancel`: the commands that take time.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep};

use super::super::console::output::{conclude, fail};
use super::super::owner_action::owner_context;
use super::context::JobContext;
use super::print;
use gatewren_gate::owner_actions::OwnerCommand;
use gatewren_host::backends::{JobStatus, neutralise};

/// Exit code: the timeout has passed, or the job had already ended.
const PAST: u8 = 3;

/// Exit code: the job has ended without success.
const NOT_DONE: u8 = 4;

/// The maximum duration of one request to the helper; then it is repeated.
const TURN: Duration = Duration::from_mins(10);

/// The pause between two requests for output, and to a helper that returns early.
const PAUSE: Duration = Duration::from_millis(500);

/// The number of bytes of output in one request.
const PIECE: u32 = 40 * 1024;

const RUNNING: &str = "running";

/// Waits until a job has ended, and prints its state.
pub async fn wait(context: &JobContext, named: &str, seconds: Option<u64>, json: bool) -> ExitCode {
    let mut job = match context.one(named).await {
        Ok(found) => found,
        Err(words) => return fail(&words),
    };
    let end = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    while job.state == RUNNING {
        let left = end.map_or(TURN, |end| end.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            break;
        }
        job = match context.all().wait(&job.job, left.min(TURN)).await {
            Ok(job) => job,
            Err(cause) => return fail(&cause),
        };
        if job.state == RUNNING {
            sleep(PAUSE.min(left)).await;
        }
    }
    let code = exit_code(&job);
    let shown = print_job(context, &job, json);
    if shown == ExitCode::SUCCESS {
        code
    } else {
        shown
    }
}

/// The exit code of a state.
fn exit_code(job: &JobStatus) -> ExitCode {
    match job.state {
        "done" => ExitCode::SUCCESS,
        RUNNING => ExitCode::from(PAST),
        _ => ExitCode::from(NOT_DONE),
    }
}

fn print_job(context: &JobContext, job: &JobStatus, json: bool) -> ExitCode {
    conclude(Ok(if json {
        print::as_json(&context.inbox, job).to_string()
    } else {
        print::state_line(&context.inbox, job)
    }))
}

/// Cancels a job; the audit records it.
pub async fn cancel(context: &JobContext, named: &str, json: bool) -> ExitCode {
    let job = match context.one(named).await {
        Ok(found) => found,
        Err(words) => return fail(&words),
    };
    if job.state != RUNNING {
        let _ = print_job(context, &job, json);
        return ExitCode::from(PAST);
    }
    let container = job.container.as_ref().map(ToString::to_string);
    let command = OwnerCommand {
        command: "job cancel",
        what: json!({ "job": job.job, "tool": job.tool, "agent": job.owner }),
        target: container.as_deref(),
        change: None,
    };
    let end = async {
        let ended = context.all().cancel(&job.job).await;
        ended.map(|job| (job, "ok"))
    };
    let owner = owner_context(&context.inbox.vault);
    match owner.run_audited_as(command, end).await {
        Ok(job) => print_job(context, &job, json),
        Err(words) => fail(&words),
    }
}

/// Prints the output of a job from an offset on; with `follow`, continues until the job has ended.
pub async fn output(
    context: &JobContext,
    named: &str,
    offset: u64,
    follow: bool,
    json: bool,
) -> ExitCode {
    let job = match context.one(named).await {
        Ok(found) => found,
        Err(words) => return fail(&words),
    };
    let mut offset = offset;
    loop {
        let piece = match context.all().output(&job.job, Some(offset), PIECE).await {
            Ok(piece) => piece,
            Err(cause) => return fail(&cause),
        };
        let is_at_end = piece.next_offset == offset;
        offset = piece.next_offset;
        let written = if json {
            writeln!(io::stdout(), "{}", json!(piece))
        } else {
            if piece.skipped_bytes > 0 {
                let skipped = piece.skipped_bytes;
                // To standard error, separate from the job's output.
                let _ = writeln!(
                    io::stderr(),
                    "gatewren: {skipped} bytes are no longer stored"
                );
            }
            write!(io::stdout(), "{}", neutralise(&piece.output))
        };
        if written.and_then(|()| io::stdout().flush()).is_err() {
            // The reader closed the pipe.
            return ExitCode::FAILURE;
        }
        if piece.truncated && !is_at_end {
            continue;
        }
        if piece.ended || !follow {
            return ExitCode::SUCCESS;
        }
        sleep(PAUSE).await;
    }
}
