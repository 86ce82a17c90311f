//! Answers about all containers at once, so that a list of them is one request to each engine and one to the helper.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Instant, timeout_at};

use gatewren_base::config::RuntimeKind;
use gatewren_wire::operations::{ContainerRef, OperationEnd, OverviewEntry};

use super::container_operations::find_all;
use super::engine_runtime::state_lines;
use super::runtime::{FoundContainer, info_lines};
use crate::context::containers::ContainerRunState;
use crate::context::helper_context::HelperContext;
use crate::context::operation_context::OperationContext;
use crate::engines::clients::refusal;
use crate::engines::{BeforeList, ListedContainer};
use crate::lxc::config_files;
use crate::lxc::paths::{existing, inside_running, inside_stopped};
use crate::lxc::vitals::lines;
use crate::processes::printing::print;
use crate::processes::step_error::StepError;

/// The most containers that are asked about concurrently. Engines compute their answers side by side.
const AT_ONCE: usize = 4;

/// How long asking about all of them may take, and the most text about them. The containers that are left then are
/// named only, and the caller asks about each.
const ASK_TIME: Duration = Duration::from_secs(5);
const MAX_TEXT_BYTES: usize = 4 * 1024 * 1024;

/// A container of an engine that root runs on this host.
struct EngineContainer {
    name: ContainerRef,
    listed: ListedContainer,
    /// The moment before it was listed, if the engine's events are read.
    before: Option<BeforeList>,
}

/// A container that is to be described.
enum Undescribed {
    Engine(Box<EngineContainer>),
    Lxc(ContainerRef),
}

/// A container, and what was found out about it; `None` if it has gone or its engine did not answer.
struct Described {
    name: ContainerRef,
    entry: Option<OverviewEntry>,
}

/// Prints the containers that may be seen, an [`OverviewEntry`] a line. Runtimes that did not answer are left out.
pub async fn print_all(context: &mut OperationContext<'_>) -> Result<OperationEnd, StepError> {
    let helper = context.helper;
    let policy = helper.policy.now();
    let engines = &helper.containers.engines;
    let before = [RuntimeKind::Docker, RuntimeKind::Podman].map(|kind| {
        let before = engines.kept(kind).before_list();
        (kind, before)
    });
    let found = context.relay.wait(find_all(helper, &policy)).await??;
    let before = BTreeMap::from(before);
    let described = describe_all(helper, found.containers, &before);
    let entries = within_text(context.relay.wait(described).await?);
    Ok(print(context.relay, move || Ok(lines(entries))).await?)
}

/// Returns an entry for each container that still exists.
async fn describe_all(
    helper: &Arc<HelperContext>,
    found: Vec<FoundContainer>,
    before: &BTreeMap<RuntimeKind, Option<BeforeList>>,
) -> Vec<OverviewEntry> {
    let mut unasked: BTreeSet<ContainerRef> = found.iter().map(|one| one.name.clone()).collect();
    for kind in before.keys() {
        let of_kind = found.iter().filter(|one| one.name.runtime() == *kind);
        let listed: Vec<_> = of_kind.filter_map(|one| one.listed.as_ref()).collect();
        helper.containers.engines.kept(*kind).keep_only(&listed);
    }
    let mut waiting = found
        .into_iter()
        .filter_map(|FoundContainer { name, listed }| match name.runtime() {
            RuntimeKind::Lxc => Some(Undescribed::Lxc(name)),
            kind => Some(Undescribed::Engine(Box::new(EngineContainer {
                before: before.get(&kind).copied().flatten(),
                listed: listed?,
                name,
            }))),
        });
    let until = Instant::now() + ASK_TIME;
    let mut entries = Vec::new();
    let mut asked = JoinSet::new();
    loop {
        while asked.len() < AT_ONCE
            && let Some(container) = waiting.next()
        {
            let helper = Arc::clone(helper);
            match container {
                Undescribed::Engine(container) => asked.spawn(describe(helper, *container)),
                Undescribed::Lxc(name) => asked.spawn(describe_lxc(helper, name)),
            };
        }
        match timeout_at(until, asked.join_next()).await {
            Ok(Some(Ok(Described { name, entry }))) => {
                unasked.remove(&name);
                entries.extend(entry);
            }
            // A panic was reported when it happened.
            Ok(Some(Err(_))) => {}
            Ok(None) | Err(_) => break,
        }
    }
    entries.extend(unasked.into_iter().map(OverviewEntry::unasked));
    entries
}

/// Describes a container by its engine's kept answer, or by a new one.
async fn describe(helper: Arc<HelperContext>, container: EngineContainer) -> Described {
    let EngineContainer {
        name,
        listed,
        before,
    } = container;
    let engines = &helper.containers.engines;
    let kept = engines.kept(name.runtime());
    let answer = match engines.api(name.runtime()) {
        Ok(api) => kept
            .ask(&api, &listed, before)
            .await
            .map_err(|error| refusal(&error)),
        Err(refusal) => Err(refusal),
    };
    let answer = match answer {
        Ok(answer) => answer,
        Err(refusal) => {
            tracing::debug!(container = %name, %refusal, "left out of the list");
            return Described { name, entry: None };
        }
    };
    let state = helper.containers.state_of(&name, answer);
    let of = name.clone();
    // Its root may be on a disk that does not respond.
    let entry = spawn_blocking(move || entry(&of, &state)).await;
    Described {
        name,
        entry: entry.ok().flatten(),
    }
}

/// Describes a container of LXC by its files and, if it runs, by its processes. What cannot be read here is left for the
/// caller to ask for, who then gets the reason.
async fn describe_lxc(helper: Arc<HelperContext>, name: ContainerRef) -> Described {
    let entry = lxc_entry(&helper, &name).await;
    Described {
        entry: Some(entry.unwrap_or_else(|| OverviewEntry::unasked(name.clone()))),
        name,
    }
}

async fn lxc_entry(helper: &HelperContext, name: &ContainerRef) -> Option<OverviewEntry> {
    let file = existing(helper, name).ok()?;
    let asked = helper.containers.ask(name).await.ok()?;
    let (state, running, container) = (asked.state?, asked.running, name.clone());
    // Files may be on a disk that does not respond.
    let read = spawn_blocking(move || {
        let config = config_files::config(&file).ok()?;
        let root = match &running {
            Some(running) => inside_running(&container, running),
            None => inside_stopped(&container, &file),
        };
        let os_release = root.and_then(|root| config_files::os_release(&root)).ok();
        Some(OverviewEntry {
            info: Some(info_lines(&state, running.map(|running| running.init))),
            config: Some(String::from_utf8_lossy(&config).into_owned()),
            os_release: os_release.map(|text| String::from_utf8_lossy(&text).into_owned()),
            container,
        })
    });
    read.await.ok().flatten()
}

fn entry(name: &ContainerRef, state: &ContainerRunState) -> Option<OverviewEntry> {
    let running = state.running.as_ref();
    let root = running.and_then(|running| inside_running(name, running).ok());
    let os_release = root.and_then(|root| config_files::os_release(&root).ok());
    Some(OverviewEntry {
        container: name.clone(),
        info: Some(state_lines(name, state).ok()?),
        config: None,
        os_release: os_release.map(|text| String::from_utf8_lossy(&text).into_owned()),
    })
}

/// Leaves the text out of the entries that would make the answer too long.
fn within_text(entries: Vec<OverviewEntry>) -> Vec<OverviewEntry> {
    let mut bytes = 0;
    let all = entries.into_iter().map(|entry| {
        let texts = [&entry.info, &entry.config, &entry.os_release]
            .into_iter()
            .flatten();
        bytes += texts.map(String::len).sum::<usize>();
        if bytes > MAX_TEXT_BYTES {
            OverviewEntry::unasked(entry.container)
        } else {
            entry
        }
    });
    all.collect()
}

#[cfg(test)]
mod tests {
    use super::super::container_overview::*;

    #[test]
    fn containers_beyond_the_most_text_are_named_only() {
        let entry = |name: &str| OverviewEntry {
            container: name.parse().unwrap(),
            config: None,
            info: Some("x".repeat(MAX_TEXT_BYTES / 2)),
            os_release: None,
        };
        let all = ["docker:a", "docker:b", "docker:c"].map(entry);
        let shown = within_text(all.to_vec());
        assert_eq!(shown[..2], all[..2]);
        let last = OverviewEntry::unasked("docker:c".parse().unwrap());
        assert_eq!(shown[2..], [last]);
    }
}
