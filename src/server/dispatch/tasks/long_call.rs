//! Long calls of clients that do not support tasks: they are answered with a job, and the work continues there.

use std::sync::Arc;

use serde_json::json;
use tokio::task::{JoinError, JoinSet};
use tokio::time::sleep;

use super::call_end::{CallEnd, StopReason};
use crate::dispatch::engine::Engine;
use crate::dispatch::reference;
use gatewren_base::sys::random_bytes;
use gatewren_gate::auth::Principal;
use gatewren_gate::policy::sees;
use gatewren_wire::protocol::{RpcError, ToolResult};
use gatewren_wire::registry::{Answer, BoxFuture, LongCall, Tool};

/// The job that a call of this tool may become, if the tool's calls may take long.
pub(in crate::dispatch) fn of_tool(tool: &Tool) -> Option<Arc<LongCall>> {
    let random = tool.is_long().then(random_bytes::<16>)?;
    let random = random.map_err(|cause| tracing::error!("cannot create a job id: {cause}"));
    let id = format!("job_{:032x}", u128::from_be_bytes(random.ok()?));
    Some(Arc::new(LongCall::new(id, tool.name())))
}

/// Returns the end of the work if it comes in time, else the job that continues it. Work that is in no job is
/// waited for.
///
/// The work also continues here, to do what is left after the job; only the stop of the server ends that.
pub(in crate::dispatch) async fn answer(
    engine: &Arc<Engine>,
    who: &Principal,
    long: &Arc<LongCall>,
    work: BoxFuture<CallEnd>,
) -> CallEnd {
    let mut running = JoinSet::new();
    running.spawn(until_stopped(engine.clone(), long.clone(), work));
    let in_time = async {
        sleep(engine.tasks.limits().after).await;
        long.wait_for_start().await;
    };
    let mut ended = tokio::select! {
        biased;
        ended = running.join_next() => ended,
        () = in_time => None,
    };
    if ended.is_none() && !long.deliver_id() {
        // It has ended at this moment.
        ended = running.join_next().await;
    }
    // Until here, the work is dropped if the client disconnects, except for what is in a job.
    running.detach_all();
    match ended.unwrap_or(Ok(None)) {
        Ok(Some(ended)) => ended,
        Ok(None) => {
            long.deliver_id();
            Ok(continued_result(engine, who, long))
        }
        Err(broken) => Err(StopReason::Rpc(broke(&broken))),
    }
}

/// Runs the work to its end; returns `None` if the server stops while the job does the work.
async fn until_stopped(
    engine: Arc<Engine>,
    long: Arc<LongCall>,
    work: BoxFuture<CallEnd>,
) -> Option<CallEnd> {
    let stopped = async {
        let _ = engine.stopping().wait_for(|stop| *stop).await;
        long.wait_for_start().await;
    };
    tokio::select! {
        biased;
        ended = work => Some(ended),
        () = stopped => None,
    }
}

/// The result that names the job that continues the work.
pub(in crate::dispatch) fn continued_result(
    engine: &Engine,
    who: &Principal,
    long: &LongCall,
) -> ToolResult {
    let (job, tool) = (long.job(), long.tool());
    let there = |name: &str| {
        engine
            .catalog
            .tool(name)
            .is_some_and(|tool| sees(who, tool))
    };
    let next = if there("job_wait") {
        format!(" Wait for its end with job_wait (job: {job}); job_output returns its output.")
    } else {
        String::new()
    };
    let words = format!(
        "This call is still running. It continues as job {job}, even if no client waits for it.{next} Do not \
         call {tool} again for it."
    );
    let data = json!({ "job": job, "state": "running", "tool": tool });
    Answer::text(words).with_data(&data).into_result()
}

fn broke(cause: &JoinError) -> RpcError {
    let reference = reference::next();
    tracing::error!(%cause, %reference, "a long call panicked");
    RpcError::internal(&reference)
}
