//! Calls without a connected client: of approved changes and of schedules.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::call::ToolRequest;
use super::engine::Engine;
use super::recorded_run::run_allowed;
use super::reference;
use gatewren_base::sys::{Requester, on_behalf_of};
use gatewren_gate::auth::Principal;
use gatewren_wire::registry::{Answer, Interruption, Permit};

/// Runs the tool. If the agent's access ends, a tool that may be interrupted is ended.
pub(in crate::dispatch) async fn run_while_admitted(
    engine: &Arc<Engine>,
    who: &Principal,
    request: ToolRequest,
    permit: Permit,
    requester: Requester,
) -> Result<(Answer, Option<u64>), String> {
    let outlives = request.tool.risk().outlives_its_client();
    let mut work = JoinSet::new();
    let of = engine.clone();
    // Spawned as a separate task, so that a panic does not lose the record.
    work.spawn(async move {
        let run = run_allowed(&of, request, permit);
        on_behalf_of(requester, run).await
    });
    let ended = tokio::select! {
        biased;
        ended = work.join_next() => ended,
        () = engine.wait_for_access_end(who), if !outlives => {
            work.shutdown().await;
            return Err("Its agent's access ended during the call, so the call was cancelled. It may be partly \
                        done.".to_owned());
        }
    };
    match ended {
        Some(Ok(Ok(answered))) => Ok(answered),
        Some(Ok(Err(Interruption::Failed(error)))) => Ok((error.into(), None)),
        Some(Ok(Err(Interruption::Ask(_)))) => Err(
            "The tool asks the person at the client, but this call runs without a client."
                .to_owned(),
        ),
        Some(Ok(Err(Interruption::Propose(_)))) => Err(
            "The tool proposes another call, which a call without a client cannot do.".to_owned(),
        ),
        Some(Ok(Err(Interruption::Rpc(error)))) => Err(error.message.into_owned()),
        Some(Err(_)) | None => {
            let reference = reference::next();
            tracing::error!(
                %reference,
                "a call without a client panicked; the previous log line has the location"
            );
            Err(format!(
                "The tool crashed (reference {reference}). It may be partly done."
            ))
        }
    }
}
