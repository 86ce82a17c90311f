//! What a person types after `gatewren job`, and where it goes.

use std::process::ExitCode;

use clap::Subcommand;
use serde_json::Value;

use super::super::{
    place::Place,
    runtime,
    say::{conclude, fail},
    table::table,
};
use super::way::Way;
use super::{follow, print};

/// Look at what goes on in the background, and end it.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,

    #[command(flatten)]
    place: Place,

    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List the jobs of all agents, the newest first
    List {
        /// Only those of this agent: its id or its name
        #[arg(long)]
        agent: Option<String>,
        /// Only those that run
        #[arg(long)]
        running: bool,
    },
    /// Show how a job stands
    Get {
        /// Its id, or the beginning of it
        #[arg(value_name = "ID")]
        job: String,
    },
    /// Wait until a job has ended, and say how
    ///
    /// Exits with 0 when it was done, with 4 when it has failed, was killed or is lost, with 3 when it still runs after
    /// the time, with 1 when there is none.
    Wait {
        /// Its id, or the beginning of it
        #[arg(value_name = "ID")]
        job: String,
        /// Seconds to wait; until it has ended when absent
        #[arg(long, value_name = "SECONDS")]
        timeout: Option<u64>,
    },
    /// Print what a job has printed
    ///
    /// With --json an object for each piece, as `job_output` answers it.
    Output {
        /// Its id, or the beginning of it
        #[arg(value_name = "ID")]
        job: String,
        /// Where to begin, in bytes
        #[arg(long, value_name = "BYTES", default_value_t = 0)]
        offset: u64,
        /// Go on until it has ended
        #[arg(long, short)]
        follow: bool,
    },
    /// End a job with everything that it has started
    ///
    /// Exits with 0 when it was ended, with 3 when it had ended before, with 1 when nothing could be done.
    Cancel {
        /// Its id, or the beginning of it
        #[arg(value_name = "ID")]
        job: String,
    },
}

/// Runs the command; the helper must run, the server need not.
pub fn run(args: &Args) -> ExitCode {
    let runtime = match runtime::build() {
        Ok(runtime) => runtime,
        Err(cause) => return fail(&cause),
    };
    let way = match Way::open(&args.place) {
        Ok(way) => way,
        Err(words) => return fail(&words),
    };
    let json = args.json;
    runtime.block_on(async {
        match &args.what {
            What::List { agent, running } => {
                conclude(list(&way, agent.as_deref(), *running, json).await)
            }
            What::Get { job } => conclude(way.one(job).await.map(|one| {
                if json {
                    print::as_json(&way.desk, &one).to_string()
                } else {
                    print::page(&way.desk, &one)
                }
            })),
            What::Wait { job, timeout } => follow::wait(&way, job, *timeout, json).await,
            What::Output {
                job,
                offset,
                follow,
            } => follow::output(&way, job, *offset, *follow, json).await,
            What::Cancel { job } => follow::cancel(&way, job, json).await,
        }
    })
}

async fn list(way: &Way, agent: Option<&str>, running: bool, json: bool) -> Result<String, String> {
    let agent = agent.map(|named| way.desk.agent(named)).transpose()?;
    let mut all = way
        .all()
        .all_with_owners()
        .await
        .map_err(|e| e.to_string())?;
    all.retain(|(owner, job)| {
        agent.as_ref().is_none_or(|agent| agent == owner) && (!running || job.ended_at.is_none())
    });
    if json {
        let rows = all.iter().map(|one| print::as_json(&way.desk, one));
        return Ok(Value::Array(rows.collect()).to_string());
    }
    if all.is_empty() {
        return Ok("there are no jobs".to_owned());
    }
    let mut rows = vec![print::HEAD.map(str::to_owned)];
    rows.extend(all.iter().map(|one| print::cells(&way.desk, one)));
    Ok(table(&rows))
}
