//! Whether the host or a container is as well after an upgrade as before: its units, its open ports, its packages.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use gatewren_wire::operations::ContainerRef;

use super::update_step::run_captured;
use crate::context::operation_context::OperationContext;
use crate::processes::step_error::StepError;

/// How long services have to be well again after an upgrade. A service that is not well then counts as a failure.
const RECOVERY_TIME: Duration = Duration::from_secs(40);

/// How long to wait before the first look: a service that cannot start often needs a moment to fail.
const SETTLE_TIME: Duration = Duration::from_secs(4);

/// The time between two looks.
const LOOK: Duration = Duration::from_secs(2);

/// Ports from here on are assigned by the kernel (`ip_local_port_range`), and differ after each start.
const EPHEMERAL: u16 = 32768;

/// The most problems in a report; the rest is dropped.
const MOST: usize = 20;

/// The longest name of a unit or a package in a report, in bytes.
const NAME_BYTES: usize = 128;

/// The state that is compared.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct UpdateHealth {
    failed_units: BTreeSet<String>,
    open_ports: BTreeSet<u16>,
    unfinished: BTreeSet<String>,
}

impl UpdateHealth {
    /// Looks at the host or a running container. Runs the container's own programs.
    ///
    /// # Errors
    /// Fails if the container does not run, or has no apt.
    pub async fn look(
        context: &mut OperationContext<'_>,
        container: Option<&ContainerRef>,
    ) -> Result<Self, StepError> {
        let step = run_captured(context, container, vec!["health".to_owned()]).await?;
        Ok(Self::parse(&step.stdout))
    }

    fn parse(text: &str) -> Self {
        let mut health = Self::default();
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let (Some("gatewren:"), Some(what), Some(which)) =
                (words.next(), words.next(), words.next())
            else {
                continue;
            };
            let name = || which.chars().take(NAME_BYTES).collect();
            match what {
                "failed" => drop(health.failed_units.insert(name())),
                "unfinished" => drop(health.unfinished.insert(name())),
                "port" => health.open_ports.extend(u16::from_str_radix(which, 16)),
                _ => {}
            }
        }
        health
    }

    /// Returns each fault that only `after` has, as a sentence.
    fn worse_in(&self, after: &Self) -> Vec<String> {
        let failed = after.failed_units.difference(&self.failed_units);
        let closed = self.open_ports.difference(&after.open_ports);
        let closed = closed.filter(|port| **port < EPHEMERAL);
        let unfinished = after.unfinished.difference(&self.unfinished);
        let all = failed.map(|unit| format!("unit {unit} has failed"));
        let all = all.chain(closed.map(|port| format!("TCP port {port} is no longer open")));
        let all =
            all.chain(unfinished.map(|name| format!("package {name} is not completely installed")));
        all.take(MOST).collect()
    }

    /// Waits until all is as well as it was, and returns what is not in time.
    pub async fn wait_until_as_before(
        &self,
        context: &mut OperationContext<'_>,
        container: Option<&ContainerRef>,
    ) -> Result<Vec<String>, StepError> {
        let until = Instant::now() + RECOVERY_TIME;
        context.relay.wait(sleep(SETTLE_TIME)).await?;
        loop {
            let problems = match Self::look(context, container).await {
                Ok(after) => self.worse_in(&after),
                Err(StepError::Refused(refusal)) => vec![refusal.to_string()],
                Err(killed) => return Err(killed),
            };
            if problems.is_empty() || Instant::now() >= until {
                return Ok(problems);
            }
            context.relay.wait(sleep(LOOK)).await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_worse_than_before_is_reported() {
        let before = UpdateHealth::parse(
            "gatewren: failed old.service\ngatewren: port 0050\ngatewren: port 01BB\nx y z\n",
        );
        assert_eq!(before.worse_in(&before), [""; 0]);
        let after = UpdateHealth::parse(
            "gatewren: failed old.service\ngatewren: failed web.service\ngatewren: port 0050\n\
             gatewren: unfinished web\ngatewren: port nonsense\n",
        );
        let worse = [
            "unit web.service has failed",
            "TCP port 443 is no longer open",
            "package web is not completely installed",
        ];
        assert_eq!(before.worse_in(&after), worse);
    }

    #[test]
    fn a_port_that_the_kernel_chose_may_close() {
        let before = UpdateHealth::parse("gatewren: port 8000\ngatewren: port 7FFF\n");
        let worse = before.worse_in(&UpdateHealth::default());
        assert_eq!(worse, ["TCP port 32767 is no longer open"]);
    }
}
