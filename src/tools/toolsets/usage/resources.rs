//! `gatewren:///history/...`: the usage of the last day as resources.

use super::answer::{UsageColumns, UsageSubject, read};
use gatewren_base::sys::now_ms;
use gatewren_store::history::{UsageHistory, UsageMetric, UsageRange};
use gatewren_store::state::Pointer;
use gatewren_wire::protocol::{Resource, ResourceContents, ResourceTemplate, RpcError, code};
use gatewren_wire::registry::{AddedResources, BoxFuture, Viewer};

/// The URI prefix of these resources.
const HISTORY: &str = "gatewren:///history/";

/// After it the host, or this and a container.
const SERVER: &str = "server";
const CONTAINERS: &str = "containers";

/// The period that they show, in seconds, and the number of points.
const PERIOD_S: u64 = 24 * 3600;
const POINTS: u32 = 96;

/// The metrics that they show.
const METRICS: [UsageMetric; 3] = [
    UsageMetric::CpuPercent,
    UsageMetric::CpuThrottledPercent,
    UsageMetric::MemoryBytes,
];

/// The usage over time of what the viewer may see.
pub struct HistoryResources(pub UsageHistory);

/// Returns whose history a URI names, if the viewer may see it.
fn subject(uri: &str, viewer: &Viewer) -> Option<UsageSubject> {
    // Clients may encode the colon of a reference.
    let path = Pointer::from_uri_path(&format!("/{}", uri.strip_prefix(HISTORY)?)).ok()?;
    match path.tokens() {
        [only] if only == SERVER => viewer.reach.host().then_some(UsageSubject::Host),
        [kind, name] if kind == CONTAINERS => {
            let may_see = !name.is_empty() && viewer.reach.container(name);
            may_see.then(|| UsageSubject::Container(name.clone()))
        }
        _ => None,
    }
}

async fn contents(
    history: UsageHistory,
    uri: String,
    subject: UsageSubject,
) -> Result<Option<Vec<ResourceContents>>, RpcError> {
    let now_s = now_ms() / 1000;
    let range = UsageRange {
        since_s: now_s.saturating_sub(PERIOD_S),
        until_s: now_s,
        now_s,
        points: POINTS,
    };
    let is_host = matches!(subject, UsageSubject::Host);
    let points = read(&history, subject, range).await;
    let points = points.map_err(|cause| RpcError::new(code::INTERNAL, cause))?;
    if points.is_empty() && !is_host {
        return Ok(None);
    }
    let columns = UsageColumns::of(&points, &METRICS);
    Ok(Some(vec![ResourceContents::of_json(&uri, &columns)]))
}

impl AddedResources for HistoryResources {
    const PREFIX: &'static str = HISTORY;

    fn resources(&self, viewer: &Viewer) -> Vec<Resource> {
        let of_host = viewer.reach.host().then(|| Resource {
            uri: format!("{HISTORY}{SERVER}"),
            name: "server-history".to_owned(),
            description: Some("The host's CPU and memory over the last 24 hours".to_owned()),
            mime_type: Some("application/json".to_owned()),
            ..Resource::default()
        });
        of_host.into_iter().collect()
    }

    fn templates(&self, _: &Viewer) -> Vec<ResourceTemplate> {
        vec![ResourceTemplate {
            uri_template: format!("{HISTORY}{CONTAINERS}/{{container}}"),
            name: "container-history".to_owned(),
            description: Some(
                "A container's CPU, throttling and memory over the last 24 hours".to_owned(),
            ),
            mime_type: Some("application/json".to_owned()),
            ..ResourceTemplate::default()
        }]
    }

    fn read(
        &self,
        viewer: &Viewer,
        uri: &str,
    ) -> BoxFuture<Result<Option<Vec<ResourceContents>>, RpcError>> {
        match subject(uri, viewer) {
            Some(subject) => Box::pin(contents(self.0.clone(), uri.to_owned(), subject)),
            None => Box::pin(std::future::ready(Ok(None))),
        }
    }
}
