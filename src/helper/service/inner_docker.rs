//! Lists the containers of the Docker inside each running container of LXC.

use tokio::task::JoinSet;
use tokio::time::{Duration, timeout};

use gatewren_base::config::RuntimeKind;
use gatewren_wire::operations::{ContainerRef, OperationRefusal};

use crate::context::helper_context::HelperContext;
use crate::context::inner_containers::InnerDaemon;
use crate::engines::EngineError;
use crate::engines::clients::not_served;

/// The most containers of LXC whose Docker is served: the first ones by name. Those of the others are missing.
pub const MAX_INNER_DAEMONS: usize = 32;

/// The most containers of a Docker inside LXC. A longer list is an error, because a part of it would be taken for all.
const MAX_INNER_CONTAINERS: usize = 256;

/// How long all lists together may take. A daemon that has not answered then counts as one that does not.
const LIST_TIME: Duration = Duration::from_secs(5);

/// The containers of all such daemons.
#[derive(Debug, Default)]
pub struct InnerListing {
    /// The references, sorted.
    pub containers: Vec<ContainerRef>,
    /// The daemons that did not answer.
    pub away: Vec<AwayDaemon>,
}

/// A Docker inside a container of LXC that did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwayDaemon {
    /// The container of LXC.
    pub outer: ContainerRef,
    /// Why, in a sentence.
    pub why: String,
}

/// Returns the daemons that the running containers of LXC would have inside, in containers that the policy may show.
pub async fn possible_daemons(helper: &HelperContext) -> Vec<InnerDaemon> {
    let policy = helper.policy.now();
    let running = helper.containers.running_lxc().await.into_iter();
    let shown = running
        .filter(|(outer, running)| policy.may_allow_inside(outer.as_str()) && !running.is_frozen());
    shown
        .map(|(outer, running)| helper.containers.daemon_in(outer, running))
        .collect()
}

/// Returns the running containers of LXC that have Docker's socket inside, whether or not the policy serves it.
pub async fn find_daemons(helper: &HelperContext) -> Vec<ContainerRef> {
    let mut asked = JoinSet::new();
    for (outer, running) in helper.containers.running_lxc().await {
        let daemon = helper.containers.daemon_in(outer, running);
        asked.spawn(async move {
            let exists = daemon.socket.exists().await;
            exists.is_ok_and(|exists| exists).then_some(daemon.outer)
        });
    }
    let mut found: Vec<ContainerRef> = asked.join_all().await.into_iter().flatten().collect();
    found.sort();
    found
}

/// Lists all containers, asking the daemons at once: one that does not answer delays no other.
///
/// # Errors
/// Fails if the policy does not serve Docker inside LXC.
pub async fn list(helper: &HelperContext) -> Result<InnerListing, OperationRefusal> {
    if !helper.policy.now().serves(RuntimeKind::DockerInLxc) {
        return Err(not_served(RuntimeKind::DockerInLxc));
    }
    let mut asked = JoinSet::new();
    for daemon in possible_daemons(helper).await {
        asked.spawn(async move {
            let listed = timeout(LIST_TIME, list_one(&daemon)).await;
            let late = |_| {
                Err(format!(
                    "it did not answer within {} s",
                    LIST_TIME.as_secs()
                ))
            };
            (daemon.outer, listed.unwrap_or_else(late))
        });
    }
    let mut answers = asked.join_all().await;
    answers.retain(|(_, listed)| *listed != Ok(None));
    answers.sort();
    let mut listing = InnerListing::default();
    for (index, (outer, listed)) in answers.into_iter().enumerate() {
        let listed = if index < MAX_INNER_DAEMONS {
            listed
        } else {
            Err(format!(
                "at most {MAX_INNER_DAEMONS} containers of LXC with Docker are served"
            ))
        };
        match listed {
            Ok(containers) => listing.containers.extend(containers.unwrap_or_default()),
            Err(why) => listing.away.push(AwayDaemon { outer, why }),
        }
    }
    listing.containers.sort();
    Ok(listing)
}

/// Returns the containers of one daemon; `None` if the container of LXC has no Docker.
async fn list_one(daemon: &InnerDaemon) -> Result<Option<Vec<ContainerRef>>, String> {
    match daemon.socket.exists().await {
        Ok(true) => {}
        Ok(false) => return Ok(None),
        Err(cause) => return Err(cause.to_string()),
    }
    let listed = daemon.api.list().await;
    let listed = listed.map_err(|error: EngineError| error.to_string())?;
    if listed.len() > MAX_INNER_CONTAINERS {
        return Err(format!(
            "Docker inside {} lists {} containers; at most {MAX_INNER_CONTAINERS} are served",
            daemon.outer,
            listed.len()
        ));
    }
    let references = listed
        .iter()
        .map(|one| ContainerRef::inside(daemon.outer.name(), &one.name));
    // A name that is longer than a reference may be is left out.
    Ok(Some(references.filter_map(Result::ok).collect()))
}
