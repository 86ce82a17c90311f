//! Waits until a service of a stack is ready for those that depend on it: healthy, or ended with success.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::helper_client::{ContainerRef, DependencyCondition};

use super::super::error::{BackendError, ErrorKind};
use super::containers::LxcView;
use super::details::{ContainerState, ContainerStatus};
use super::stacks::StackMember;

/// How often a service is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What must be true of a container before another one starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartCondition {
    /// The container.
    container: ContainerRef,
    /// The condition.
    condition: DependencyCondition,
}

/// How far a container is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Readiness {
    Ready,
    NotYet,
    /// It does not become ready by itself, for this reason.
    Never(String),
}

impl StartCondition {
    /// Returns the conditions for the start of a member that need waiting. A service has to be ready in all of its
    /// containers.
    pub fn of(member: &StackMember, members: &[StackMember]) -> Vec<Self> {
        let waited = member.depends_on.iter();
        let waited = waited.filter(|needed| needed.condition != DependencyCondition::Started);
        let conditions = waited.flat_map(|needed| {
            let of_service = members.iter();
            let of_service = of_service.filter(|m| m.service == needed.service);
            of_service
                .filter(|other| other.service != member.service)
                .map(|other| Self {
                    container: other.container.clone(),
                    condition: needed.condition,
                })
        });
        conditions.collect()
    }

    fn readiness(&self, status: &ContainerStatus) -> Readiness {
        let engine = status.engine.as_ref();
        let exit_code = engine.and_then(|engine| engine.exit_code);
        let health = engine.and_then(|engine| engine.health.as_ref());
        let health = health.map(|health| health.status.as_str());
        match (self.condition, status.state) {
            (DependencyCondition::Completed, ContainerState::Stopped) => match exit_code {
                Some(0) => Readiness::Ready,
                Some(code) => Readiness::Never(format!("ended with exit code {code}")),
                None => Readiness::Never("has not run".to_owned()),
            },
            (DependencyCondition::Completed, _) => Readiness::NotYet,
            (_, ContainerState::Stopped) => Readiness::Never("is stopped".to_owned()),
            (_, ContainerState::Frozen) => Readiness::Never("is frozen".to_owned()),
            (DependencyCondition::Healthy, _) => match health {
                Some("unhealthy") => Readiness::Never("is unhealthy".to_owned()),
                Some("starting") => Readiness::NotYet,
                // Without a health check, running is all that is known.
                _ => Readiness::Ready,
            },
            (DependencyCondition::Started, _) => Readiness::Ready,
        }
    }
}

/// Waits until a condition is true.
///
/// # Errors
/// If it does not become true by itself, or not in time.
pub async fn wait_until_ready(
    lxc: &LxcView,
    condition: &StartCondition,
    until: Instant,
) -> Result<(), BackendError> {
    let container = &condition.container;
    loop {
        let status = lxc.status(container).await?;
        match condition.readiness(&status) {
            Readiness::Ready => return Ok(()),
            Readiness::Never(why) => {
                let words = format!("it depends on '{container}', which {why}");
                return Err(BackendError::new(ErrorKind::Failed, words));
            }
            Readiness::NotYet if Instant::now() >= until => {
                let words = format!(
                    "it depends on '{container}', which was not {} in time; start the stack again later",
                    wanted(condition.condition)
                );
                return Err(BackendError::new(ErrorKind::Failed, words));
            }
            Readiness::NotYet => sleep(LOOK_EVERY).await,
        }
    }
}

fn wanted(condition: DependencyCondition) -> &'static str {
    match condition {
        DependencyCondition::Started => "started",
        DependencyCondition::Healthy => "healthy",
        DependencyCondition::Completed => "finished",
    }
}

#[cfg(test)]
mod tests {
    use crate::helper_client::{ContainerHealth, EngineFacts};

    use super::*;

    fn readiness(
        condition: DependencyCondition,
        state: ContainerState,
        health: Option<&str>,
        exit_code: Option<i64>,
    ) -> Readiness {
        let condition = StartCondition {
            container: "docker:db".parse().unwrap(),
            condition,
        };
        let health = health.map(|status| ContainerHealth {
            status: status.to_owned(),
            failing_streak: 0,
        });
        condition.readiness(&ContainerStatus {
            state,
            init_pid: None,
            addresses: Vec::new(),
            engine: Some(EngineFacts {
                health,
                exit_code,
                ..EngineFacts::default()
            }),
        })
    }

    #[test]
    fn a_service_with_a_health_check_is_ready_when_it_is_healthy() {
        let healthy = |state, health| readiness(DependencyCondition::Healthy, state, health, None);
        let running = ContainerState::Running;
        assert_eq!(healthy(running, Some("starting")), Readiness::NotYet);
        assert_eq!(healthy(running, Some("healthy")), Readiness::Ready);
        assert_eq!(healthy(running, None), Readiness::Ready);
        for never in [
            healthy(running, Some("unhealthy")),
            healthy(ContainerState::Stopped, Some("healthy")),
            healthy(ContainerState::Frozen, Some("healthy")),
        ] {
            assert!(matches!(never, Readiness::Never(_)), "{never:?}");
        }
    }

    #[test]
    fn a_service_that_must_end_is_ready_when_it_ended_with_success() {
        let ended = |state, code| readiness(DependencyCondition::Completed, state, None, code);
        assert_eq!(ended(ContainerState::Running, None), Readiness::NotYet);
        assert_eq!(ended(ContainerState::Stopped, Some(0)), Readiness::Ready);
        for code in [Some(1), None] {
            let never = ended(ContainerState::Stopped, code);
            assert!(matches!(never, Readiness::Never(_)), "{never:?}");
        }
    }
}
