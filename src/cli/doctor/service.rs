//! Checks gatewren's systemd units: whether they run, and how well they are sandboxed.

use super::super::console::program::read_output;
use super::super::units::{UNITS, UnitState, systemd_runs};
use super::finding::Finding;

/// The maximum exposure of the front in `systemd-analyze security`, in tenths; as shipped, it is well below.
const EXPOSURE: u32 = 20;

/// Checks all units, and the sandbox of the front.
pub async fn look() -> Vec<Finding> {
    if !systemd_runs() {
        let seen = "systemd is not the init of this host, so the units were not checked";
        return vec![Finding::skipped("units", seen)];
    }
    let mut found = Vec::new();
    for unit in UNITS {
        match UnitState::of(unit).await {
            Some(state) => found.extend(check_unit(unit, &state)),
            None => return vec![Finding::skipped("units", "systemctl does not answer")],
        }
    }
    if found.is_empty() {
        found.push(Finding::good(
            "units",
            "front, helper and their sockets are up",
        ));
    }
    found.push(sandbox().await);
    found
}

fn check_unit(unit: &str, state: &UnitState) -> Option<Finding> {
    let why = format!("systemctl status {unit}; journalctl -u {unit} -n 30");
    if !state.is_installed() {
        let seen = format!("{unit} is not installed");
        return Some(Finding::problem(
            "units",
            seen,
            "install gatewren's package",
        ));
    }
    let active = state.get("ActiveState");
    if active == "failed" {
        let seen = format!("{unit} has failed ({})", state.get("Result"));
        return Some(Finding::problem("units", seen, why));
    }
    // The helper starts on demand.
    if !state.is_active() && unit != "gatewren-helper.service" {
        let seen = format!("{unit} is {active}");
        let start = format!("systemctl start {unit}; if it does not stay up: {why}");
        return Some(Finding::problem("units", seen, start));
    }
    let restarts: u32 = state.get("NRestarts").parse().unwrap_or(0);
    if restarts > 0 {
        let seen = format!("{unit} was restarted {restarts} times after failures");
        return Some(Finding::warning("units", seen, why));
    }
    if unit == "gatewren.service" && state.get("UnitFileState") == "disabled" {
        let seen = format!("{unit} is not started at boot");
        return Some(Finding::warning(
            "units",
            seen,
            format!("systemctl enable {unit}"),
        ));
    }
    None
}

async fn sandbox() -> Finding {
    let unit = "gatewren.service";
    let text = read_output("systemd-analyze", &["security", "--no-pager", unit]).await;
    let Some(tenths) = text.as_deref().and_then(exposure) else {
        return Finding::skipped("sandbox", "systemd-analyze does not report the exposure");
    };
    let seen = format!("exposure of {unit}: {}.{} of 10", tenths / 10, tenths % 10);
    if tenths > EXPOSURE {
        let remedy = format!("systemctl cat {unit}: a drop-in has removed a restriction");
        return Finding::warning("sandbox", seen, remedy);
    }
    Finding::good("sandbox", seen)
}

/// The number in "Overall exposure level for gatewren.service: 1.2 OK", in tenths.
fn exposure(text: &str) -> Option<u32> {
    let line = text
        .lines()
        .find(|line| line.contains("Overall exposure level"))?;
    let number = line.rsplit(": ").next()?.split_whitespace().next()?;
    let (whole, part) = number.split_once('.')?;
    Some(whole.parse::<u32>().ok()? * 10 + part.parse::<u32>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exposure_is_read() {
        let text = "✓ PrivateTmp= …\n\n→ Overall exposure level for gatewren.service: 1.2 OK 🙂\n";
        assert_eq!(exposure(text), Some(12));
        assert_eq!(exposure("Unit not found"), None);
    }
}
