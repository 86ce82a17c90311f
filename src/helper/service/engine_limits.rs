//! Changes the settings of a container that an engine can change while the container exists.

use gatewren_wire::operations::{DefinitionChanges, OperationRefusal};

use crate::engines::{EngineLimits, RestartPolicy};

/// Thousandths of a CPU in one percent of it.
const MILLI_CPUS_PER_PERCENT: u32 = 10;

/// Returns the limits for changes of a definition.
///
/// # Errors
/// Fails for a setting that an engine fixes when it creates the container.
pub fn limits(changes: &DefinitionChanges) -> Result<EngineLimits, OperationRefusal> {
    let DefinitionChanges {
        hostname,
        memory_limit_bytes,
        cpu_limit_percent,
        processes_limit,
        start_delay_s,
        start_order,
    } = changes;
    let is_fixed = hostname.is_some()
        || processes_limit.is_some()
        || start_delay_s.is_some()
        || start_order.is_some();
    if is_fixed {
        return Err(OperationRefusal::bad_command(
            "only the limits of memory and CPU of a container of Docker or Podman can be changed; its other settings \
             are those it was created with",
        ));
    }
    if *memory_limit_bytes == Some(0) || *cpu_limit_percent == Some(0) {
        return Err(OperationRefusal::bad_command(
            "a limit of a container of Docker or Podman can be changed but not removed; give a larger one",
        ));
    }
    Ok(EngineLimits {
        memory_bytes: *memory_limit_bytes,
        milli_cpus: cpu_limit_percent.map(|percent| percent.saturating_mul(MILLI_CPUS_PER_PERCENT)),
        restart_policy: None,
    })
}

/// Returns the policy of a container that starts with its engine, or that does not.
pub fn autostart(on: bool) -> EngineLimits {
    let policy = if on {
        RestartPolicy::UnlessStopped
    } else {
        RestartPolicy::No
    };
    EngineLimits {
        restart_policy: Some(policy),
        ..EngineLimits::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::engine_limits::*;

    #[test]
    fn only_memory_and_cpu_can_be_changed() {
        let changes = DefinitionChanges {
            memory_limit_bytes: Some(64 << 20),
            cpu_limit_percent: Some(150),
            ..DefinitionChanges::default()
        };
        let new = limits(&changes).unwrap();
        assert_eq!(
            (new.memory_bytes, new.milli_cpus),
            (Some(64 << 20), Some(1500))
        );
        for refused in [
            DefinitionChanges {
                start_order: Some(1),
                ..changes.clone()
            },
            DefinitionChanges {
                memory_limit_bytes: Some(0),
                ..changes
            },
        ] {
            assert!(limits(&refused).is_err());
        }
    }
}
