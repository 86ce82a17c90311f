//! Restarts or powers off the host through systemd's logind, some seconds later, so that the response is sent first.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gatewren_wire::operations::{OperationEnd, OperationRefusal, PowerPlan};

use crate::context::helper_context::HelperContext;
use crate::context::operation_context::OperationContext;
use crate::context::tools;
use crate::processes::commands::require_root;

/// logind on the system bus (org.freedesktop.login1(5)).
const LOGIND: [&str; 3] = [
    "org.freedesktop.login1",
    "/org/freedesktop/login1",
    "org.freedesktop.login1.Manager",
];

/// The shortest and the longest delay. Other delays are clamped to them.
const DELAY_SECONDS: (u32, u32) = (5, 24 * 60 * 60);

/// The longest reason. A longer one is rejected.
const REASON_BYTES: usize = 512;

/// Schedules a restart or power-off, in logind's word for it. Replaces an earlier schedule.
pub async fn schedule(
    context: &mut OperationContext<'_>,
    how: &str,
    plan: &PowerPlan,
) -> Result<OperationEnd, OperationRefusal> {
    let helper = context.helper;
    require_root()?;
    let reason = check_reason(plan.reason.as_deref())?;
    not_inhibited(helper).await?;
    // An empty message clears that of an earlier schedule.
    let message = logind("call", "SetWallMessage", &["sb", reason, "true"]);
    tools::output(&message, &helper.orphans).await?;
    let at = time_after(plan.delay_s)?;
    let schedule = logind("call", "ScheduleShutdown", &["st", how, &at]);
    context.run_tool(&schedule).await
}

/// Cancels the schedule, and prints whether there was one.
pub async fn cancel(context: &mut OperationContext<'_>) -> Result<OperationEnd, OperationRefusal> {
    require_root()?;
    let cancel = logind("call", "CancelScheduledShutdown", &[]);
    context.run_tool(&cancel).await
}

/// Rejects the operation while a program holds an inhibitor lock against shutdown, for example during an upgrade.
async fn not_inhibited(helper: &HelperContext) -> Result<(), OperationRefusal> {
    let question = logind("get-property", "BlockInhibited", &[]);
    let answer = tools::output(&question, &helper.orphans).await?;
    let Some(locks) = locks(&answer) else {
        return Err(OperationRefusal::failed(
            "systemd-logind does not answer; check: systemctl status systemd-logind",
        ));
    };
    if locks.split(':').any(|lock| lock == "shutdown") {
        return Err(OperationRefusal::failed(
            "a program currently blocks the shutdown of this server; find it with: systemd-inhibit --list",
        ));
    }
    Ok(())
}

/// Parses the blocked operations from busctl's output, such as `s "shutdown:sleep"`.
fn locks(answer: &str) -> Option<&str> {
    answer.trim().strip_prefix("s \"")?.strip_suffix('"')
}

fn check_reason(reason: Option<&str>) -> Result<&str, OperationRefusal> {
    let reason = reason.unwrap_or_default();
    if reason.len() > REASON_BYTES || reason.contains(char::is_control) {
        return Err(OperationRefusal::bad_command(format!(
            "the reason must be one line of at most {REASON_BYTES} bytes"
        )));
    }
    Ok(reason)
}

/// Returns the time in microseconds since 1970, as logind expects it.
fn time_after(delay_s: u32) -> Result<String, OperationRefusal> {
    let (shortest, longest) = DELAY_SECONDS;
    let delay = Duration::from_secs(delay_s.clamp(shortest, longest).into());
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now =
        now.map_err(|_| OperationRefusal::failed("the clock of this server is before 1970"))?;
    Ok((now + delay).as_micros().to_string())
}

fn logind(verb: &str, member: &str, rest: &[&str]) -> tools::HostTool {
    // `--`: an argument that begins with a hyphen is not taken for an option of busctl.
    let words = [verb, "--"].into_iter().chain(LOGIND).chain([member]);
    tools::HostTool::new("busctl", words.chain(rest.iter().copied()))
}

#[cfg(test)]
mod tests {
    use super::super::power::*;

    #[test]
    fn what_is_blocked_is_read_from_the_answer_and_from_nothing_else() {
        assert_eq!(locks("s \"\"\n"), Some(""));
        assert_eq!(locks("s \"shutdown:sleep\"\n"), Some("shutdown:sleep"));
        for none in ["", "s\n", "Failed to get property: x\n", "b true"] {
            assert_eq!(locks(none), None, "{none}");
        }
    }

    #[test]
    fn a_reason_is_one_line() {
        assert_eq!(check_reason(None).unwrap(), "");
        assert_eq!(check_reason(Some("a kernel")).unwrap(), "a kernel");
        for bad in ["a\nb", "a\u{1b}[2J", &"x".repeat(REASON_BYTES + 1)] {
            assert!(check_reason(Some(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_answer_has_time_to_go_out_and_the_plan_is_not_forgotten() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        for (delay, least, most) in [(0, 5, 5), (60, 60, 60), (u32::MAX, 86_400, 86_400)] {
            // In microseconds, as logind wants it: the fraction below them is cut off.
            let at: u128 = time_after(delay).unwrap().parse().unwrap();
            let earliest = now + Duration::from_secs(least);
            assert!(at >= earliest.as_micros(), "{delay}");
            // The test may have been suspended for a while.
            let later = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            let latest = later + Duration::from_secs(most);
            assert!(at <= latest.as_micros(), "{delay}");
        }
    }

    #[test]
    fn a_reason_is_never_an_option() {
        let tool = logind("call", "SetWallMessage", &["sb", "--help", "true"]);
        let [verb, end, .., reason, _] = tool.args.as_slice() else {
            panic!("{tool:?}");
        };
        assert_eq!(
            (verb.as_str(), end.as_str(), reason.as_str()),
            ("call", "--", "--help")
        );
    }
}
