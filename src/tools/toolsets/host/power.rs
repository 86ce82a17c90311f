//! `server_restart`, `server_shutdown`, `server_cancel_shutdown`: restart and shutdown through systemd.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::toolsets::bounded_number::BoundedNumber;
use crate::toolsets::failure::failed;
use gatewren_host::backends::{Power, PowerAction};
use gatewren_wire::registry::{Cx, HelperClass, Result, Risk, Scope, Toolset};

/// The toolset.
pub fn tools(power: Arc<Power>) -> Toolset<Power> {
    Toolset::new(power)
        .with_name("server")
        .tool("server_restart", Risk::Disrupt, restart)
        .about(Scope::Host)
        .through(HelperClass::Power)
        .titled("Restart the server")
        .startos("server.restart", &[])
        .tool("server_shutdown", Risk::Disrupt, shutdown)
        .about(Scope::Host)
        .through(HelperClass::Power)
        .titled("Shut down the server")
        .startos("server.shutdown", &[])
        .tool("server_cancel_shutdown", Risk::Write, cancel)
        .about(Scope::Host)
        .through(HelperClass::Power)
        .titled("Cancel a restart or shutdown")
}

/// The delay in seconds: long enough for the answer to be sent first, at most a day.
type Delay = BoundedNumber<5, 86_400, 15>;

/// Restart the host some seconds after the answer, and return the plan. Everything on it
/// ends, containers too, and starts again if set to. `server_cancel_shutdown` cancels it.
///
/// The plan replaces an earlier one. Fails while a program holds an inhibitor lock, such as a running upgrade.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Restart {
    /// The delay in seconds, 5 to 86400.
    #[serde(default)]
    delay_s: Delay,
    /// The reason, in one line; logged-in users see it.
    reason: Option<String>,
}

/// Shut down the host some seconds after the answer, and return the plan. The host
/// cannot be switched on again through this server. `server_cancel_shutdown` cancels it.
///
/// The plan replaces an earlier one. Fails while a program holds an inhibitor lock, such as a running upgrade.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Shutdown {
    /// The delay in seconds, 5 to 86400.
    #[serde(default)]
    delay_s: Delay,
    /// The reason, in one line; logged-in users see it.
    reason: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Planned {
    /// The plan: `restart` or `shutdown`.
    planned: &'static str,
    /// Seconds from now.
    in_s: u64,
}

async fn restart(power: Arc<Power>, request: Restart, cx: Cx) -> Result<Planned> {
    let Restart { delay_s, reason } = request;
    plan(&power, PowerAction::Restart, delay_s, reason, &cx).await
}

async fn shutdown(power: Arc<Power>, request: Shutdown, cx: Cx) -> Result<Planned> {
    let Shutdown { delay_s, reason } = request;
    plan(&power, PowerAction::Shutdown, delay_s, reason, &cx).await
}

async fn plan(
    power: &Power,
    down: PowerAction,
    delay: Delay,
    reason: Option<String>,
    cx: &Cx,
) -> Result<Planned> {
    let delay = delay.seconds();
    let planned = power.plan(down, delay, reason, cx.reference()).await;
    planned.map_err(failed)?;
    Ok(Planned {
        planned: match down {
            PowerAction::Restart => "restart",
            PowerAction::Shutdown => "shutdown",
        },
        in_s: delay.as_secs(),
    })
}

/// Cancel a restart or shutdown that was planned with `server_restart` or otherwise.
///
/// Returns whether one was planned; if not, nothing is done.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Cancel {}

#[derive(Serialize, JsonSchema)]
struct Cancelled {
    /// Whether a restart or shutdown was planned.
    cancelled: bool,
}

async fn cancel(power: Arc<Power>, Cancel {}: Cancel, cx: Cx) -> Result<Cancelled> {
    let cancelled = power.cancel(cx.reference()).await.map_err(failed)?;
    Ok(Cancelled { cancelled })
}

#[cfg(test)]
mod tests {
    use super::super::power::*;

    #[test]
    fn a_plan_leaves_time_for_the_answer_and_is_at_most_a_day_ahead() {
        let asked: Restart = serde_json::from_str("{}").unwrap();
        assert_eq!((asked.delay_s.get(), asked.reason), (15, None));
        for bad in [
            r#"{"delay_s":4}"#,
            r#"{"delay_s":86401}"#,
            r#"{"force":true}"#,
        ] {
            assert!(serde_json::from_str::<Shutdown>(bad).is_err(), "{bad}");
        }
    }
}
