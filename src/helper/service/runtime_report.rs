//! Reports the container runtimes of the host: which are here, which are served, and whether they answer.

use gatewren_base::config::{HelperPolicy, RuntimeKind};
use gatewren_wire::operations::{EngineDescription, OperationEnd, OperationRefusal, RuntimeReport};

use super::inner_docker::{self, AwayDaemon, InnerListing};
use super::lxc_runtime::LxcRuntime;
use super::runtime::ContainerRuntime as _;
use crate::context::helper_context::HelperContext;
use crate::context::operation_context::OperationContext;
use crate::context::programs::find;
use crate::engines::podman_user::{PodmanUser, users_with_podman};
use crate::engines::{EngineApi, EngineError};
use crate::processes::printing::print;
use crate::processes::step_error::StepError;

/// Prints a report of each runtime, a JSON object a line.
pub async fn report(context: &mut OperationContext<'_>) -> Result<OperationEnd, StepError> {
    let helper = context.helper;
    let policy = helper.policy.now();
    let mut lines = String::new();
    let mut add = |report: &RuntimeReport| {
        // Plain strings always serialize.
        lines.push_str(&serde_json::to_string(report).unwrap_or_default());
        lines.push('\n');
    };
    for kind in RuntimeKind::ALL {
        add(&context.relay.wait(report_of(helper, &policy, kind)).await?);
    }
    let unserved = users_with_podman().into_iter();
    let unserved = unserved.filter(|user| !policy.serves_podman_of(user));
    for user in policy.podman_users.iter().cloned().chain(unserved) {
        let report = report_of_user(helper, &policy, user);
        add(&context.relay.wait(report).await?);
    }
    Ok(print(context.relay, move || Ok(lines.into_bytes())).await?)
}

async fn report_of(
    helper: &HelperContext,
    policy: &HelperPolicy,
    kind: RuntimeKind,
) -> RuntimeReport {
    let socket = policy.socket(kind);
    let places = if kind == RuntimeKind::DockerInLxc && policy.serves(RuntimeKind::Lxc) {
        inner_docker::find_daemons(helper).await
    } else {
        Vec::new()
    };
    let mut report = RuntimeReport {
        runtime: kind,
        user: None,
        is_served: policy.serves(kind),
        is_here: match socket {
            Some(socket) => socket.exists(),
            None if kind == RuntimeKind::DockerInLxc => !places.is_empty(),
            None => find("lxc-start").is_ok(),
        },
        socket: socket.map(|socket| socket.display().to_string()),
        places,
        engine: None,
        error: None,
    };
    if !report.is_served {
        return report;
    }
    let answer = match kind {
        RuntimeKind::Lxc => LxcRuntime.list(helper).await.map(|_| None),
        RuntimeKind::Docker | RuntimeKind::Podman => match helper.containers.engines.api(kind) {
            Ok(api) => describe(&api).await.map(Some),
            Err(refusal) => Err(refusal),
        },
        RuntimeKind::DockerInLxc => match inner_docker::list(helper).await {
            Ok(InnerListing { away, .. }) => match away.into_iter().next() {
                Some(AwayDaemon { why, .. }) => Err(OperationRefusal::failed(why)),
                None => Ok(None),
            },
            Err(refusal) => Err(refusal),
        },
    };
    match answer {
        Ok(engine) => report.engine = engine,
        Err(refusal) => report.error = Some(refusal.message),
    }
    report
}

async fn report_of_user(
    helper: &HelperContext,
    policy: &HelperPolicy,
    name: String,
) -> RuntimeReport {
    let user = PodmanUser::find(&name);
    let socket = user.as_ref().map(PodmanUser::socket).ok();
    let mut report = RuntimeReport {
        runtime: RuntimeKind::Podman,
        is_served: policy.serves_podman_of(&name),
        is_here: socket.as_ref().is_some_and(|socket| socket.exists()),
        socket: socket.map(|socket| socket.display().to_string()),
        places: Vec::new(),
        engine: None,
        error: user.err().map(|refusal| refusal.message),
        user: None,
    };
    if report.is_served && report.error.is_none() {
        let answer = match helper.containers.engines.api_of_user(&name) {
            Ok(api) => describe(&api).await,
            Err(refusal) => Err(refusal),
        };
        match answer {
            Ok(engine) => report.engine = Some(engine),
            Err(refusal) => report.error = Some(refusal.message),
        }
    }
    RuntimeReport {
        user: Some(name),
        ..report
    }
}

async fn describe(api: &EngineApi) -> Result<EngineDescription, OperationRefusal> {
    let refusal = |error: EngineError| OperationRefusal::failed(error.to_string());
    let version = api.ping().await.map_err(refusal)?;
    let info = api.info().await.map_err(refusal)?;
    Ok(EngineDescription {
        version: info.server_version,
        api_version: version.to_string(),
        cgroup_version: info.cgroup_version,
        cgroup_driver: info.cgroup_driver,
        oci_runtime: info.default_runtime,
        has_live_restore: info.has_live_restore,
        is_rootless: info.is_rootless,
    })
}
