//! The report on containers: the sizes of their files and snapshots, and what of theirs can be deleted.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use gatewren_base::config::{HelperPolicy, RuntimeKind};
use gatewren_wire::operations::{
    ContainerDiskReport, ContainerRef, ContainerSize, EngineDiskUse, OperationEnd, OperationRefusal,
};

use super::container_items::{SnapshotPlace, engine_items, snapshot_item};
use super::measure::{SizeRequest, count};
use crate::context::helper_context::HelperContext;
use crate::context::operation_context::OperationContext;
use crate::engines::clients::refusal;
use crate::engines::{EngineApi, EngineSizes};
use crate::lxc::config_files::root_of;
use crate::lxc::snapshots::{SnapshotPath, snapshot_paths};
use crate::processes::answers::{line, to_its_end};
use crate::processes::commands::require_root;
use crate::processes::printing::print;

/// How long the files of all containers of LXC are counted together. What takes longer has no size in the report.
const TIME: Duration = Duration::from_secs(25);

/// A container of LXC with the directories that are counted.
struct LxcPlaces {
    container: ContainerRef,
    root: Option<String>,
    snapshots: Vec<SnapshotPlace>,
}

/// Prints the report.
pub async fn report(context: &mut OperationContext<'_>) -> Result<OperationEnd, OperationRefusal> {
    require_root()?;
    let helper = context.helper;
    let collected = context.relay.wait(Box::pin(collect(helper))).await;
    let report = match collected {
        Ok(report) => report?,
        Err(why) => return Ok(OperationEnd::Killed { why }),
    };
    print(context.relay, move || Ok(line(&report))).await
}

async fn collect(helper: &HelperContext) -> Result<ContainerDiskReport, OperationRefusal> {
    let policy = helper.policy.now();
    let engines = [RuntimeKind::Docker, RuntimeKind::Podman];
    let [docker, podman] = engines.map(|engine| of_engine(helper, &policy, engine));
    let (lxc, docker, podman) = tokio::join!(of_lxc(helper, &policy), docker, podman);
    let mut report = lxc?;
    for part in [docker, podman] {
        report.containers.extend(part.containers);
        report.engines.extend(part.engines);
        report.items.extend(part.items);
        report.problems.extend(part.problems);
    }
    Ok(report)
}

async fn of_lxc(
    helper: &HelperContext,
    policy: &HelperPolicy,
) -> Result<ContainerDiskReport, OperationRefusal> {
    if !policy.serves(RuntimeKind::Lxc) {
        return Ok(ContainerDiskReport::default());
    }
    let places = lxc_places(helper, policy).await?;
    let roots = places.iter().filter_map(|one| one.root.clone());
    let snapshots = places.iter().flat_map(|one| &one.snapshots);
    let paths = roots.chain(snapshots.map(|place| place.path.clone()));
    let request = SizeRequest {
        paths: paths.collect(),
        depth: 0,
        least_bytes: 0,
        time: TIME,
    };
    let counted = count(request, &helper.orphans).await?;
    let sizes = counted.sizes.into_iter();
    let sizes: BTreeMap<String, u64> = sizes.map(|size| (size.path, size.bytes)).collect();
    let mut report = ContainerDiskReport {
        incomplete: !counted.is_complete,
        ..ContainerDiskReport::default()
    };
    for LxcPlaces {
        container,
        root,
        snapshots,
    } in places
    {
        let item = |place| Some(snapshot_item(place, *sizes.get(&place.path)?));
        let items: Vec<_> = snapshots.iter().filter_map(item).collect();
        let sum: u64 = items.iter().map(|item| item.bytes).sum();
        report.containers.push(ContainerSize {
            container,
            bytes: root.as_ref().and_then(|path| sizes.get(path)).copied(),
            path: root,
            snapshot_bytes: (!items.is_empty()).then_some(sum),
        });
        report.items.extend(items);
    }
    Ok(report)
}

async fn lxc_places(
    helper: &HelperContext,
    policy: &HelperPolicy,
) -> Result<Vec<LxcPlaces>, OperationRefusal> {
    let definitions = helper.containers.definitions().clone();
    let policy = policy.clone();
    to_its_end(move || {
        let names = definitions.names().map_err(|e| {
            OperationRefusal::failed(format!("the containers of LXC cannot be listed: {e}"))
        })?;
        let names = names
            .into_iter()
            .filter(|name| policy.allows_container(name.as_str()));
        let places = names.map(|container| {
            let root = root_of(&definitions.file(&container)).ok();
            let root = root.and_then(|root| root.to_str().map(str::to_owned));
            let snapshots = snapshots_of(&definitions.directory(&container), &container);
            LxcPlaces {
                container,
                root,
                snapshots,
            }
        });
        Ok(places.collect())
    })
    .await
}

fn snapshots_of(directory: &Path, container: &ContainerRef) -> Vec<SnapshotPlace> {
    let place = |found: SnapshotPath| {
        Some(SnapshotPlace {
            container: container.clone(),
            snapshot: found.snapshot,
            path: found.path.to_str()?.to_owned(),
        })
    };
    let found = snapshot_paths(directory).into_iter();
    found.filter_map(place).collect()
}

/// Reads what an engine keeps. An engine that is not served has nothing; one that does not answer is a problem.
async fn of_engine(
    helper: &HelperContext,
    policy: &HelperPolicy,
    engine: RuntimeKind,
) -> ContainerDiskReport {
    let mut report = ContainerDiskReport::default();
    if !policy.serves(engine) {
        return report;
    }
    let (listed, sizes) = match read_engine(helper, engine).await {
        Ok(read) => read,
        Err(refusal) => {
            report.problems.push(refusal.message);
            return report;
        }
    };
    let visible = listed
        .into_iter()
        .filter(|one| policy.allows_container(one.container.as_str()));
    report.containers.extend(visible);
    // Images and volumes belong to no container, and so may hold data of a hidden one.
    if policy.shows_all_containers() {
        report.items = engine_items(engine, &sizes);
        report.engines.push(EngineDiskUse {
            engine,
            images_bytes: sizes.images_bytes,
            volumes_bytes: sizes.volumes_bytes,
            build_cache_bytes: sizes.build_cache_bytes,
        });
    }
    report
}

async fn read_engine(
    helper: &HelperContext,
    engine: RuntimeKind,
) -> Result<(Vec<ContainerSize>, EngineSizes), OperationRefusal> {
    let api: EngineApi = helper.containers.engines.api(engine)?;
    let listed = api.list().await.map_err(|e| refusal(&e))?;
    let sizes = api.sizes().await.map_err(|e| refusal(&e))?;
    let containers = listed.into_iter().filter_map(|one| {
        Some(ContainerSize {
            container: ContainerRef::of(engine, &one.name).ok()?,
            bytes: sizes.containers.get(one.id.as_str()).copied(),
            path: None,
            snapshot_bytes: None,
        })
    });
    Ok((containers.collect(), sizes))
}
