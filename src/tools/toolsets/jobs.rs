//! `job_*`: commands that continue after their call was answered.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::bounded_number::BoundedNumber;
use super::failure::failed;
use super::shell::program;
use gatewren_host::backends::{
    ContainerRef, JobId, JobOutput, JobStatus, JobStatusList, Jobs, JobsView, ShellCall, neutralise,
};
use gatewren_wire::registry::{Answer, Cx, HelperClass, Result, Risk, Scope, Toolset};

/// The toolset.
pub fn tools(jobs: Arc<Jobs>) -> Toolset<Jobs> {
    Toolset::new(jobs)
        .with_name("shell")
        .tool("job_start", Risk::Execute, start)
        .about(Scope::Container("container"))
        .through(HelperClass::ContainerShell)
        .or_through(HelperClass::HostShell)
        .titled("Run a command in the background")
        .with_name("jobs")
        .tool("job_list", Risk::Read, list)
        .about(Scope::Within)
        .titled("List your jobs")
        .tool("job_get", Risk::Read, look)
        .about(Scope::Within)
        .titled("Show a job")
        .tool("job_wait", Risk::Read, wait)
        .about(Scope::Within)
        .titled("Wait for a job")
        .answering("job_output", Risk::Read, output)
        .about(Scope::Within)
        .titled("Read a job's output")
        .returning::<JobOutput>()
        .tool("job_cancel", Risk::Write, cancel)
        .about(Scope::Within)
        .titled("Cancel a job")
        .startos("package.cancel-install", &[("id", "job")])
}

/// How many seconds a job may run: by default an hour, at most a day.
type Timeout = BoundedNumber<1, 86_400, 3600>;

/// How many seconds one call waits: less than the timeout of most clients.
type Wait = BoundedNumber<1, 45, 45>;

/// The number of output bytes in one answer.
type Most = BoundedNumber<1, 40_960, 16_384>;

/// Run a long command (over a minute) in the background, on the host or in a running container. Returns a job id at
/// once; the job does not end with this call, its client or this server. At its end all its processes are killed.
/// `job_output` reads its output, `job_wait` waits, `job_cancel` stops it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Start {
    /// The container to run it in; default: the host. `container_list` shows the names.
    container: Option<ContainerRef>,
    /// The command line for `/bin/bash -c` on the host, `/bin/sh -c` in a container. Give this or `argv`.
    command: Option<String>,
    /// A program and its arguments, run without a shell. Give this or `command`.
    argv: Option<Vec<String>>,
    /// Seconds until all its processes are killed: 1 to 86400.
    #[serde(default)]
    timeout_s: Timeout,
    /// The user to run as; default: root.
    user: Option<String>,
    /// The directory to start in; default: the user's home.
    cwd: Option<String>,
    /// Environment variables to add.
    #[serde(default)]
    env: BTreeMap<String, String>,
}

async fn start(jobs: Arc<Jobs>, asked: Start, cx: Cx) -> Result<JobStatus> {
    let call = ShellCall {
        command: program(asked.command, asked.argv)?,
        timeout: asked.timeout_s.seconds(),
        user: asked.user,
        cwd: asked.cwd,
        env: asked.env,
        on_host: asked.container.is_none() || cx.is_on_host(),
    };
    let own = own(&jobs, &cx);
    let started = own.start("job_start", asked.container.as_ref(), call).await;
    started.map_err(failed)
}

/// List your jobs, newest first: those that run, and those that have ended, as far as they are still kept. `job_output`
/// reads a job's output.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {}

async fn list(jobs: Arc<Jobs>, List {}: List, cx: Cx) -> Result<JobStatusList> {
    own(&jobs, &cx).all().await.map_err(failed)
}

/// Show the state of one of your jobs: whether it runs or how it ended, and how much it has printed. `job_output` reads
/// its output.
///
/// A job that is not yours or no longer kept is not found.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Look {
    /// The job's id, from the answer that started it. `job_list` lists the ids.
    job: JobId,
}

async fn look(jobs: Arc<Jobs>, asked: Look, cx: Cx) -> Result<JobStatus> {
    own(&jobs, &cx).one(&asked.job).await.map_err(failed)
}

/// Wait until one of your jobs ends, at most 45 seconds, and return its state. If it still runs, call this again, or
/// read its output so far with `job_output`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WaitFor {
    /// The job's id, from the answer that started it. `job_list` lists the ids.
    job: JobId,
    /// Seconds to wait, 1 to 45.
    #[serde(default)]
    timeout_s: Wait,
}

async fn wait(jobs: Arc<Jobs>, asked: WaitFor, cx: Cx) -> Result<JobStatus> {
    let own = own(&jobs, &cx);
    let waited = own.wait(&asked.job, asked.timeout_s.seconds()).await;
    waited.map_err(failed)
}

/// Read part of the output of one of your jobs, stdout and stderr in order of arrival, from `offset` or, by default,
/// its end. Continue at `next_offset`. `job_wait` waits for the job to end.
///
/// Of a long output, only the first 2 MiB and at least the last 6 MiB are kept; `skipped_bytes` counts the rest.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Output {
    /// The job's id, from the answer that started it. `job_list` lists the ids.
    job: JobId,
    /// The byte to start at, counted from the beginning; default: the last `limit_bytes`.
    offset: Option<u64>,
    /// The maximum number of bytes to return, 1 to 40960.
    #[serde(default)]
    limit_bytes: Most,
}

async fn output(jobs: Arc<Jobs>, asked: Output, cx: Cx) -> Result<Answer> {
    let own = own(&jobs, &cx);
    let read = own.output(&asked.job, asked.offset, asked.limit_bytes.get());
    let read = read.await.map_err(failed)?;
    let more = match (read.ended, read.truncated) {
        (_, true) => "more follows",
        (true, _) => "end of output",
        _ => "the job is running",
    };
    // Neutralised, because terminal control sequences would take effect in the terminal that shows the text.
    let skipped = match read.skipped_bytes {
        0 => String::new(),
        bytes => format!("; {bytes} bytes before them are no longer kept"),
    };
    let text = format!(
        "bytes {} to {} of {}{skipped}; {more}\n{}",
        read.offset,
        read.next_offset,
        read.output_bytes,
        neutralise(&read.output)
    );
    Ok(Answer::text(text).with_data_of_text(&read, &["output"], &cx))
}

/// Cancel one of your jobs: kill all processes that it started, including background ones, at once. `job_output` reads
/// its output.
///
/// Its work may be left half done. Returns how it ended; a job that has already ended is left as it is.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Cancel {
    /// The job's id, from the answer that started it. `job_list` lists the ids.
    job: JobId,
}

async fn cancel(jobs: Arc<Jobs>, asked: Cancel, cx: Cx) -> Result<JobStatus> {
    own(&jobs, &cx).cancel(&asked.job).await.map_err(failed)
}

/// The caller's own jobs.
fn own<'a>(jobs: &'a Jobs, cx: &'a Cx) -> JobsView<'a> {
    let caller = cx.caller();
    jobs.of(&caller.agent, &caller.reach, cx.reference())
}
