//! Makes systemd listen on the wanted address, and makes the service apply the changes.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::super::console::listen::Listen;
use super::super::console::program::succeeds;
use super::super::units::UnitState;

/// The socket unit has the port; this drop-in changes it without editing the package's file (systemd.unit(5)).
const DROP_IN: &str = "/etc/systemd/system/gatewren.socket.d/10-init.conf";

/// The unit of the helper.
const HELPER: &str = "gatewren-helper.service";

/// The units to start, in this order.
const STARTED: [&str; 3] = [
    "gatewren.socket",
    "gatewren-helper.socket",
    "gatewren.service",
];

/// Whether systemd has our units.
pub async fn is_installed() -> bool {
    let unit = UnitState::of("gatewren.socket").await;
    unit.is_some_and(|unit| unit.is_installed())
}

/// Makes the socket listen there; returns whether that is a change.
pub async fn listen(listen: Listen) -> Result<bool, String> {
    let path = Path::new(DROP_IN);
    let text = format!(
        "# Written by `gatewren init`, which overwrites it.\n[Socket]\nListenStream=\nListenStream={listen}\n"
    );
    let describe = |cause: std::io::Error| format!("{DROP_IN}: {cause}; run this as root");
    let before = match fs::read_to_string(path) {
        Ok(before) => Some(before),
        Err(cause) if cause.kind() == ErrorKind::NotFound => None,
        Err(cause) => return Err(describe(cause)),
    };
    if before.as_ref() == Some(&text) {
        return Ok(false);
    }
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, &text))
        .map_err(describe)?;
    if listens().await {
        return Ok(true);
    }
    // The port is in use: restore the old configuration, which worked.
    let back = match before {
        Some(before) => fs::write(path, before),
        None => fs::remove_file(path),
    };
    back.map_err(describe)?;
    let again = if listens().await {
        "The old port is open again"
    } else {
        "See systemctl status gatewren.socket"
    };
    Err(format!(
        "cannot listen on {listen}: another program uses it (ss -ltnp), or it is not an address of this host. {again}"
    ))
}

/// Reopens the socket. systemd does that only if both the socket and its service are stopped.
async fn listens() -> bool {
    succeeds("systemctl", &["daemon-reload"]).await;
    succeeds(
        "systemctl",
        &["stop", "gatewren.service", "gatewren.socket"],
    )
    .await;
    succeeds("systemctl", &["start", "gatewren.socket"]).await
}

/// Starts and enables the units if they do not run, else makes the service reload its settings.
pub async fn take(changed: bool) -> Result<bool, String> {
    let unit = UnitState::of("gatewren.service").await.unwrap_or_default();
    let ran = unit.is_active();
    if ran && !changed {
        return Ok(false);
    }
    let well = if ran {
        succeeds("systemctl", &["reload", "gatewren.service"]).await
    } else {
        let enabled = [["enable", "--now"].as_slice(), STARTED.as_slice()].concat();
        succeeds("systemctl", &enabled).await
    };
    if well {
        return Ok(true);
    }
    Err("the service did not start or reload; gatewren check and systemctl status gatewren.service show why; fix it, \
         then run `gatewren init` again"
        .to_owned())
}

/// Makes a running helper read its policy again. One that does not run reads it when it starts.
pub async fn reload_helper() -> Result<(), String> {
    let helper = UnitState::of(HELPER).await.unwrap_or_default();
    if !helper.is_active() || succeeds("systemctl", &["reload", HELPER]).await {
        return Ok(());
    }
    Err(format!(
        "{HELPER} did not reload helper.toml; systemctl status {HELPER} shows why"
    ))
}
