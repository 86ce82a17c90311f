//! Turns an engine's answer about a container into the facts that the helper passes on.

use gatewren_base::config::RuntimeKind;
use gatewren_wire::operations::{
    ComposeService, ContainerHealth, EngineFacts, EngineMountFacts, PublishedPort,
};

use crate::context::inner_containers::lxc_rights;
use crate::engines::podman_user::PodmanUser;
use crate::engines::{EngineMount, EnginePort, InspectedContainer, host_rights, user_rights};

/// The most mounts and published ports of a container of Docker inside LXC that are passed on. What that Docker says is
/// not trusted, and could fill the state.
const MAX_INNER_FACTS: usize = 64;

/// Returns the facts about a container of this runtime. For one of a user's Podman, `user` is that user.
pub fn engine_facts(
    container: &InspectedContainer,
    runtime: RuntimeKind,
    user: Option<&PodmanUser>,
) -> EngineFacts {
    let is_inner = runtime == RuntimeKind::DockerInLxc;
    let most = if is_inner {
        MAX_INNER_FACTS
    } else {
        usize::MAX
    };
    let (host_rights, lxc_rights) = match user {
        _ if is_inner => (Vec::new(), lxc_rights(container)),
        Some(user) => (user_rights(container, user), Vec::new()),
        None => {
            let rights = host_rights(container);
            (rights.iter().map(ToString::to_string).collect(), Vec::new())
        }
    };
    let ports = container.ports.iter().filter_map(published);
    let state = &container.state;
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    EngineFacts {
        engine_state: state.status.as_str().to_owned(),
        id: container.id.as_str().to_owned(),
        image: container.image.clone(),
        image_id: container.image_id.as_ref().map(|id| id.as_str().to_owned()),
        created_ms: container.created_ms,
        started_ms: state.started_ms,
        finished_ms: state.finished_ms,
        exit_code: state.exit_code,
        oom_killed: state.is_oom_killed,
        health: state.health.map(|health| ContainerHealth {
            status: health.status.as_str().to_owned(),
            failing_streak: health.failing_streak,
        }),
        restart_policy: container
            .restart_policy
            .map(|policy| policy.as_str().to_owned()),
        compose: compose(container),
        published_ports: ports.take(most).collect(),
        mounts: container.mounts.iter().map(mount).take(most).collect(),
        user: text(&container.user),
        network: container.network_mode.clone(),
        host_rights,
        lxc_rights,
        no_commands: None,
    }
}

fn compose(container: &InspectedContainer) -> Option<ComposeService> {
    let labels = &container.labels;
    Some(ComposeService {
        project: labels.compose_project.clone()?,
        service: labels.compose_service.clone(),
        config_files: labels.compose_files.clone(),
        depends_on: labels.compose_dependencies.clone(),
        one_off: labels.is_compose_one_off,
    })
}

fn published(port: &EnginePort) -> Option<PublishedPort> {
    Some(PublishedPort {
        container_port: port.container_port,
        protocol: port.protocol.clone(),
        host_address: port.host_ip.filter(|address| !address.is_unspecified()),
        host_port: port.host_port?,
    })
}

fn mount(mount: &EngineMount) -> EngineMountFacts {
    EngineMountFacts {
        kind: mount.kind.clone(),
        destination: mount.destination.clone(),
        source: (!mount.source.is_empty()).then(|| mount.source.clone()),
        read_only: !mount.is_writable,
    }
}
