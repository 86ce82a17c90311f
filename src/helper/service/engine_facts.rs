//! Turns an engine's answer about a container into the facts that the helper passes on.

use gatewren_wire::operations::{
    ComposeService, ContainerHealth, EngineFacts, EngineMountFacts, PublishedPort,
};

use crate::engines::podman_user::PodmanUser;
use crate::engines::{EngineMount, EnginePort, InspectedContainer, host_rights, user_rights};

/// Returns the facts about a container. For one of a user's Podman, `user` is that user.
pub fn engine_facts(container: &InspectedContainer, user: Option<&PodmanUser>) -> EngineFacts {
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
        published_ports: container.ports.iter().filter_map(published).collect(),
        mounts: container.mounts.iter().map(mount).collect(),
        user: text(&container.user),
        network: container.network_mode.clone(),
        host_rights: match user {
            Some(user) => user_rights(container, user),
            None => host_rights(container)
                .iter()
                .map(ToString::to_string)
                .collect(),
        },
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
