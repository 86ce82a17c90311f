//! Builds a demo: fills its stores, marks its catalog, and answers instead of the helper.

use std::path::Path;
use std::sync::Arc;

use super::answers;
use super::made_up::MadeUpServer;
use super::usage::{last_hour, write_week};
use super::writer::PastWriter;
use crate::app::build_error::BuildError;
use gatewren_base::sys::now_ms;
use gatewren_host::helper_client::HelperClient;
use gatewren_owner::SampleHistory;
use gatewren_store::history::UsageHistory;
use gatewren_store::state::State;
use gatewren_store::vault::Vault;
use gatewren_wire::protocol::Implementation;
use gatewren_wire::registry::Catalog;

/// What clients show people as the server's name.
const TITLE: &str = "gatewren (demo)";

/// The begin of the instructions for models.
const INSTRUCTIONS: &str = "Demo: nothing here is real. The server, its containers and its past are invented. Mention it when \
    you report about them. Only tools that use the state, the inbox, notifications and the usage history work; all others \
    answer that this is a demo, and approved changes are not run.\n\n";

/// Returns the catalog, in a demo with a title and instructions that name it: clients and models read them first.
pub fn marked(mut catalog: Catalog, is_demo: bool) -> Catalog {
    if is_demo {
        catalog.is_demo = true;
        catalog.server = Arc::new(Implementation {
            title: Some(TITLE.to_owned()),
            ..Implementation::clone(&catalog.server)
        });
        if let Some(instructions) = &mut catalog.instructions {
            instructions.insert_str(0, INSTRUCTIONS);
        }
    }
    catalog
}

/// Returns a handle to no helper: it answers from the description, and refuses everything else.
pub fn answer_in_process(directory: &Path) -> Result<HelperClient, BuildError> {
    let made_up = MadeUpServer::read(now_ms()).map_err(BuildError::lasting)?;
    HelperClient::answered_by(directory, move |operation| {
        answers::answer(&made_up, operation, now_ms())
    })
    .map_err(BuildError::new)
}

/// Fills the empty stores of a demo. Returns the samples of its last hour.
pub async fn fill(
    directory: &Path,
    vault: &Vault,
    state: &State,
) -> Result<SampleHistory, BuildError> {
    let now_ms = now_ms();
    let made_up = MadeUpServer::read(now_ms).map_err(BuildError::lasting)?;
    let past = PastWriter::begin(vault, state);
    past.write(&made_up, now_ms)
        .await
        .map_err(BuildError::new)?;
    let history = UsageHistory::at(directory.join("usage.db"));
    let written = tokio::task::spawn_blocking(move || {
        write_week(&history, &made_up, now_ms).map(|()| last_hour(&made_up))
    });
    let written = written.await.map_err(BuildError::new)?;
    written.map_err(BuildError::new)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::past::{PastEventKind, events};
    use super::*;
    use crate::app::tables;

    #[test]
    fn the_invented_calls_are_of_tools_that_exist_and_have_their_class() {
        let catalog = tables().unwrap();
        let now_ms = now_ms();
        let made_up = MadeUpServer::read(now_ms).unwrap();
        let calls = made_up.agents.iter().flat_map(|agent| &agent.calls);
        let calls = calls.map(|call| (&call.tool, &call.risk));
        let causes = made_up.containers.values().flat_map(|one| &one.events);
        let causes = causes.filter_map(|event| event.cause.as_ref());
        let requests = made_up.requests.iter().map(|one| (&one.tool, &one.risk));
        let all = calls.chain(causes.map(|one| (&one.tool, &one.risk)));
        for (tool, risk) in all.chain(requests) {
            let found = catalog.tool(tool).map(|found| found.risk().as_str());
            assert_eq!(found, Some(risk.as_str()), "{tool}");
        }
    }

    #[test]
    fn the_past_is_in_order_ends_before_now_and_is_the_same_at_each_start() {
        let shape = |now_ms: u64| {
            let made_up = MadeUpServer::read(now_ms).unwrap();
            let past = events(&made_up, now_ms);
            assert!(past.is_sorted_by_key(|event| event.at_ms));
            assert!(past.iter().all(|event| event.at_ms < now_ms));
            let times = past.iter().map(|event| now_ms - event.at_ms);
            times.collect::<Vec<u64>>()
        };
        let times = shape(1_800_000_000_000);
        assert!((500..3_000).contains(&times.len()), "{}", times.len());
        assert_eq!(times, shape(1_800_333_333_333));
    }

    #[test]
    fn each_named_agent_and_container_exists() {
        let made_up = MadeUpServer::read(now_ms()).unwrap();
        let agents: BTreeSet<&str> = made_up.agents.iter().map(|one| &*one.name).collect();
        for event in events(&made_up, now_ms()) {
            if let PastEventKind::Call(call) = event.what {
                let container = call.arguments.get("container").and_then(|one| one.as_str());
                assert!(container.is_none_or(|name| made_up.containers.contains_key(name)));
            }
        }
        let requesters = made_up.requests.iter().map(|one| &*one.agent);
        for name in requesters.chain(made_up.watches.iter().map(|one| &*one.agent)) {
            assert!(agents.contains(name), "{name}");
        }
        for name in made_up.containers.keys() {
            assert!(
                name.parse::<gatewren_host::backends::ContainerRef>()
                    .is_ok(),
                "{name}"
            );
        }
    }
}
