//! Lets the service reach push services on the internet, or no longer: a drop-in for its unit.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::console::program::succeeds;

/// The drop-in. It changes the unit without editing the package's file (systemd.unit(5)).
const DROP_IN: &str = "/etc/systemd/system/gatewren.service.d/20-push.conf";

/// Push services have no fixed addresses. The port belongs to gatewren.socket, whose own list still keeps connections
/// from the internet away.
const TEXT: &str = "\
# Written by `gatewren notify push on`; `gatewren notify push off` removes it.
# The service may reach the internet, for push services. gatewren.socket still limits who may connect.
[Service]
IPAddressDeny=
";

/// Writes or removes the drop-in, and restarts the service if that is a change. Returns what was done.
pub async fn set_reach(wanted: bool) -> Result<String, String> {
    if !change(Path::new(DROP_IN), wanted)? {
        let state = if wanted { "on" } else { "off" };
        return Ok(format!("nothing to change: it is already {state}"));
    }
    let reloaded = succeeds("systemctl", &["daemon-reload"]).await;
    if !reloaded || !succeeds("systemctl", &["try-restart", "gatewren.service"]).await {
        let state = if wanted { "written" } else { "removed" };
        return Err(format!(
            "{DROP_IN} was {state}, but the service did not restart; systemctl status gatewren.service shows why"
        ));
    }
    Ok(if wanted {
        format!(
            "the service can reach push services ({DROP_IN}); add a device on the owner's page, under Settings"
        )
    } else {
        format!("the service can reach only the local network ({DROP_IN} was removed)")
    })
}

/// Writes or removes the file; returns whether that is a change.
fn change(path: &Path, wanted: bool) -> Result<bool, String> {
    let describe = |cause: std::io::Error| format!("{}: {cause}; run this as root", path.display());
    let before = match fs::read_to_string(path) {
        Ok(before) => Some(before),
        Err(cause) if cause.kind() == ErrorKind::NotFound => None,
        Err(cause) => return Err(describe(cause)),
    };
    if before.as_deref() == wanted.then_some(TEXT) {
        return Ok(false);
    }
    let done = if wanted {
        let folder = path.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(folder).and_then(|()| fs::write(path, TEXT))
    } else {
        fs::remove_file(path)
    };
    done.map_err(describe).map(|()| true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewren_base::sys::Scratch;

    #[test]
    fn the_drop_in_is_written_once_and_removed_once() {
        let scratch = Scratch::new();
        let path = scratch.join("unit.d/20-push.conf");
        assert_eq!(change(&path, false), Ok(false));
        assert_eq!(change(&path, true), Ok(true));
        assert_eq!(change(&path, true), Ok(false));
        assert_eq!(fs::read_to_string(&path).unwrap(), TEXT);
        fs::write(&path, "# of an older version\n").unwrap();
        assert_eq!(change(&path, true), Ok(true), "it is replaced");
        assert_eq!(change(&path, false), Ok(true));
        assert!(!path.exists());
    }
}
