//! The arguments of `gatewren job`, and their dispatch to the subcommands.

use std::process::ExitCode;

use clap::Subcommand;
use serde_json::Value;

use super::super::console::output::{conclude, fail};
use super::super::console::runtime;
use super::super::console::table::table;
use super::super::console::target::SubcommandArgs;
use super::context::JobContext;
use super::{follow, print};

/// The arguments of the command.
pub type JobArgs = SubcommandArgs<JobSubcommand>;

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum JobSubcommand {
    /// List the jobs of all agents, the newest first
    List {
        /// Only jobs of this agent: its id or its name
        #[arg(long)]
        agent: Option<String>,
        /// Only running jobs
        #[arg(long)]
        running: bool,
    },
    /// Show the state of a job
    Get {
        /// The id of the job, or a unique prefix of it
        #[arg(value_name = "ID")]
        job: String,
    },
    /// Wait until a job has ended, and print its state
    ///
    /// Exits with 0 if it is done, with 4 if it has failed, was killed or is lost. Exits with 3 if it still runs
    /// after the timeout, with 1 if it does not exist.
    Wait {
        /// The id of the job, or a unique prefix of it
        #[arg(value_name = "ID")]
        job: String,
        /// The timeout in seconds; none if absent
        #[arg(long, value_name = "SECONDS")]
        timeout: Option<u64>,
    },
    /// Print the output of a job
    ///
    /// With --json, prints one object for each piece, as `job_output` returns it.
    Output {
        /// The id of the job, or a unique prefix of it
        #[arg(value_name = "ID")]
        job: String,
        /// The offset to start from, in bytes
        #[arg(long, value_name = "BYTES", default_value_t = 0)]
        offset: u64,
        /// Continue until the job has ended
        #[arg(long, short)]
        follow: bool,
    },
    /// Kill a job with all its child processes
    ///
    /// Exits with 0 if it was killed, with 3 if it had already ended, with 1 if nothing could be done.
    Cancel {
        /// The id of the job, or a unique prefix of it
        #[arg(value_name = "ID")]
        job: String,
    },
}

/// Runs the command; it needs the helper, but not the server.
pub fn run(args: &JobArgs) -> ExitCode {
    let runtime = match runtime::build() {
        Ok(runtime) => runtime,
        Err(cause) => return fail(&cause),
    };
    let context = match JobContext::open(&args.place) {
        Ok(context) => context,
        Err(words) => return fail(&words),
    };
    let json = args.json;
    runtime.block_on(async {
        match &args.subcommand {
            JobSubcommand::List { agent, running } => {
                conclude(list(&context, agent.as_deref(), *running, json).await)
            }
            JobSubcommand::Get { job } => conclude(context.one(job).await.map(|one| {
                if json {
                    print::as_json(&context.inbox, &one).to_string()
                } else {
                    print::page(&context.inbox, &one)
                }
            })),
            JobSubcommand::Wait { job, timeout } => {
                follow::wait(&context, job, *timeout, json).await
            }
            JobSubcommand::Output {
                job,
                offset,
                follow,
            } => follow::output(&context, job, *offset, *follow, json).await,
            JobSubcommand::Cancel { job } => follow::cancel(&context, job, json).await,
        }
    })
}

async fn list(
    context: &JobContext,
    agent: Option<&str>,
    running: bool,
    json: bool,
) -> Result<String, String> {
    let agent = agent.map(|named| context.inbox.agent(named)).transpose()?;
    let all = context.all().all().await;
    let mut all = all.map_err(|e| e.to_string())?.jobs;
    all.retain(|job| {
        agent.as_ref().is_none_or(|agent| *agent == job.owner)
            && (!running || job.ended_at.is_none())
    });
    if json {
        let rows = all.iter().map(|one| print::as_json(&context.inbox, one));
        return Ok(Value::Array(rows.collect()).to_string());
    }
    if all.is_empty() {
        return Ok("there are no jobs".to_owned());
    }
    let mut rows = vec![print::HEAD.map(str::to_owned)];
    rows.extend(all.iter().map(|one| print::cells(&context.inbox, one)));
    Ok(table(&rows))
}
