//! Wireless networks, through `NetworkManager`: lists networks in range and saved ones, joins and forgets them.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::Mutex;

use gatewren_base::sys::neutralise;
use gatewren_base::sys::source::{names, word};
use gatewren_wire::operations::{
    OperationEnd, OperationRefusal, RefusalCode, Ssid, WifiAction, WifiInterface, WifiStatus,
};

use super::nmcli::{NmcliTimeout, SavedNetwork, find_points, list_saved, networks, parts, run};
use super::wifi_country;
use super::wifi_profile::{WifiProfile, choose_authentication, password};
use crate::context::helper_context::HelperContext;
use crate::context::operation_context::OperationContext;
use crate::context::programs::find;
use crate::processes::answers::line;
use crate::processes::commands::require_root;
use crate::processes::printing::print;
use crate::processes::step_error::{StepError, operation_end, step_end};

/// How long joining a network may take.
const JOIN: NmcliTimeout = NmcliTimeout(30);

/// How long rejoining the previous network may take.
const REJOIN: NmcliTimeout = NmcliTimeout(20);

/// How long other commands may take.
const SOON: NmcliTimeout = NmcliTimeout(10);

/// The network interfaces in sysfs.
const INTERFACES: &str = "/sys/class/net";

/// Held during a change: one at a time.
static TURN: Mutex<()> = Mutex::const_new(());

/// Performs one of the operations on wireless networks.
pub async fn perform(
    context: &mut OperationContext<'_>,
    action: &WifiAction,
) -> Result<OperationEnd, OperationRefusal> {
    let helper = context.helper;
    require_root()?;
    find("nmcli")?;
    if action.facts().is_read_only {
        return step_end(read(context, action).await);
    }
    let turn = TURN.try_lock().map_err(|_| {
        let message = "another call is changing the wireless network; try again later";
        OperationRefusal::new(RefusalCode::Busy, message)
    })?;
    let (helper, action) = (Arc::clone(helper), action.clone());
    // In its own task: the change is expected to cut off the caller, and must still complete.
    let done = context.run_change(async move {
        let _turn = turn;
        change(&helper, &action).await
    });
    operation_end(done.await)
}

async fn read(
    context: &mut OperationContext<'_>,
    action: &WifiAction,
) -> Result<OperationEnd, StepError> {
    let helper = context.helper;
    let bytes = match action {
        WifiAction::Scan {} => context.relay.wait(scan(helper)).await??,
        _ => context.relay.wait(status(helper)).await??,
    };
    Ok(print(context.relay, move || Ok(bytes)).await?)
}

async fn change(helper: &HelperContext, action: &WifiAction) -> Result<(), OperationRefusal> {
    match action {
        WifiAction::Status {} | WifiAction::Scan {} => Ok(()),
        WifiAction::Connect { ssid } => connect(helper, ssid).await,
        WifiAction::Forget { ssid } => forget(helper, ssid).await,
        WifiAction::Enable { enabled } => {
            if !enabled {
                must_have_a_cable()?;
            }
            let word = if *enabled { "on" } else { "off" };
            run(helper, SOON, &["radio", "wifi", word]).await.map(drop)
        }
        WifiAction::Country { country } => wifi_country::set(helper, country).await,
    }
}

async fn scan(helper: &HelperContext) -> Result<Vec<u8>, OperationRefusal> {
    let saved = list_saved(helper).await?;
    Ok(line(&networks(&find_points(helper, true).await?, &saved)))
}

async fn status(helper: &HelperContext) -> Result<Vec<u8>, OperationRefusal> {
    let radio = run(helper, SOON, &["--fields", "WIFI-HW,WIFI", "radio"]).await?;
    let radio = parts(radio.trim());
    let listed = run(helper, SOON, &["--fields", "DEVICE,TYPE,STATE", "device"]).await?;
    let (saved, points) = (list_saved(helper).await?, find_points(helper, false).await?);
    let mut interfaces: Vec<WifiInterface> = listed.lines().filter_map(interface).collect();
    for interface in &mut interfaces {
        let own = |point: &&super::nmcli::AccessPoint| point.interface == interface.interface;
        let own: Vec<_> = points.iter().filter(own).cloned().collect();
        interface.network = networks(&own, &saved)
            .into_iter()
            .find(|network| network.joined);
    }
    interfaces.sort_by(|one, other| one.interface.cmp(&other.interface));
    let mut names: Vec<String> = saved.into_iter().filter_map(|one| one.ssid).collect();
    names.sort();
    names.dedup();
    let policy = helper.policy.now();
    let with_password = policy
        .wifi_networks
        .iter()
        .map(|network| network.ssid.clone());
    Ok(line(&WifiStatus {
        enabled: radio.get(1).is_some_and(|word| word == "enabled"),
        blocked: radio.first().is_some_and(|word| word == "disabled"),
        country: wifi_country::now(helper).await,
        interfaces,
        saved: names
            .iter()
            .map(|name| neutralise(name).into_owned())
            .collect(),
        with_password: with_password.collect(),
    }))
}

/// Parses a line of the list of devices.
fn interface(line: &str) -> Option<WifiInterface> {
    match parts(line).as_slice() {
        [name, kind, state] if kind == "wifi" => Some(WifiInterface {
            interface: neutralise(name).into_owned(),
            state: neutralise(state).into_owned(),
            network: None,
        }),
        _ => None,
    }
}

/// Joins a network: a saved one with its profile, another one with the password file that the policy names. If that
/// fails, saved and joined networks are restored.
async fn connect(helper: &HelperContext, ssid: &Ssid) -> Result<(), OperationRefusal> {
    let saved = list_saved(helper).await?;
    let profile = WifiProfile::of(ssid);
    let of_the_owner = saved
        .iter()
        .find(|one| one.ssid.as_deref() == Some(ssid.as_str()) && one.uuid != profile.uuid);
    let former = saved
        .iter()
        .find(|one| one.active)
        .map(|one| one.uuid.clone());
    let kept = profile.read_contents()?;
    let (uuid, written) = if let Some(one) = of_the_owner {
        (one.uuid.clone(), false)
    } else {
        let written = prepare(helper, ssid, &profile, kept.is_some()).await?;
        (profile.uuid.clone(), written)
    };
    let mut joined = Ok(String::new());
    if written {
        joined = run(helper, SOON, &["connection", "load", &profile.file()]).await;
    }
    if joined.is_ok() {
        joined = run(helper, JOIN, &["connection", "up", "uuid", &uuid]).await;
    }
    let Err(refusal) = joined else {
        return Ok(());
    };
    let mut words = refusal.message.clone();
    if written
        && let Err(worse) = take_back(helper, &profile, kept.as_deref().map(Vec::as_slice)).await
    {
        // Rejoining the previous network matters more.
        words = format!("{words}; the change to its saved profile could not be undone: {worse}");
    }
    Err(OperationRefusal::failed(match former {
        None => format!("{words}; the host is not connected to a network, as before"),
        Some(former) => match run(helper, REJOIN, &["connection", "up", "uuid", &former]).await {
            Ok(_) => format!("{words}; the host is back in its previous network"),
            Err(worse) => {
                let worse = &worse.message;
                format!("{words}; and the host could not rejoin its previous network: {worse}")
            }
        },
    }))
}

/// Writes the profile of a network if needed; returns whether it was written.
async fn prepare(
    helper: &HelperContext,
    ssid: &Ssid,
    profile: &WifiProfile,
    is_there: bool,
) -> Result<bool, OperationRefusal> {
    let policy = helper.policy.now();
    let mut known = policy.wifi_networks.iter();
    let file = known.find(|network| network.ssid == ssid.as_str());
    let word = file.map(|network| password(&network.file)).transpose()?;
    if word.is_none() && is_there {
        return Ok(false);
    }
    let points = find_points(helper, true).await?;
    // If an open network has the same name, the one with a password is meant.
    let mut points: Vec<_> = points
        .into_iter()
        .filter(|point| point.ssid == ssid.as_str().as_bytes())
        .collect();
    points.sort_by_key(|point| point.security.is_empty());
    let Some(point) = points.first() else {
        return Err(OperationRefusal::failed(
            "no network with this name is in range; wifi_scan lists those that are",
        ));
    };
    profile.write(&choose_authentication(&point.security, word)?)?;
    Ok(true)
}

/// Restores the state before the profile was written.
async fn take_back(
    helper: &HelperContext,
    profile: &WifiProfile,
    kept: Option<&[u8]>,
) -> Result<(), OperationRefusal> {
    if kept.is_some() {
        profile.put_back(kept)?;
        let load = ["connection", "load", &profile.file()];
        return run(helper, SOON, &load).await.map(drop);
    }
    // Deleting through NetworkManager also deletes the file. If NetworkManager does not know the profile, only the
    // file is deleted.
    let delete = ["connection", "delete", "uuid", &profile.uuid];
    let _ = run(helper, SOON, &delete).await;
    profile.put_back(None)
}

async fn forget(helper: &HelperContext, ssid: &Ssid) -> Result<(), OperationRefusal> {
    let saved = list_saved(helper).await?;
    let own: Vec<&SavedNetwork> = saved
        .iter()
        .filter(|one| one.ssid.as_deref() == Some(ssid.as_str()))
        .collect();
    if own.is_empty() {
        return Err(OperationRefusal::failed(
            "no network with this name is saved; wifi_status lists those that are",
        ));
    }
    if own.iter().any(|one| one.active) {
        must_have_a_cable()?;
    }
    let mut words = vec!["connection", "delete"];
    words.extend(own.iter().flat_map(|one| ["uuid", one.uuid.as_str()]));
    run(helper, SOON, &words).await.map(drop)
}

/// Rejects a change that would leave the host without any network.
fn must_have_a_cable() -> Result<(), OperationRefusal> {
    if has_a_cable(Path::new(INTERFACES)) {
        return Ok(());
    }
    Err(OperationRefusal::failed(
        "no network cable is plugged in: without the wireless network this host would be unreachable",
    ))
}

/// Returns whether a physical interface that is not wireless has a carrier.
fn has_a_cable(interfaces: &Path) -> bool {
    names(interfaces).iter().any(|name| {
        let place = interfaces.join(name);
        let wireless = place.join("wireless").exists() || place.join("phy80211").exists();
        let carrier = word(place.join("carrier"));
        place.join("device").exists() && !wireless && carrier.as_deref() == Some("1")
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::wifi::*;
    use gatewren_base::sys::Scratch;

    // Trees in the layout of sysfs (the kernel's Documentation/ABI/testing/sysfs-class-net).
    #[test]
    fn a_cable_is_one_of_a_real_interface() {
        let scratch = Scratch::new();
        let add = |name: &str, parts: &[&str], carrier: &str| {
            for part in parts {
                fs::create_dir_all(scratch.join(name).join(part)).unwrap();
            }
            fs::create_dir_all(scratch.join(name)).unwrap();
            fs::write(scratch.join(name).join("carrier"), carrier).unwrap();
        };
        add("lo", &[], "1\n");
        add("lxcbr0", &["bridge"], "1\n");
        add("wlan0", &["device", "wireless", "phy80211"], "1\n");
        add("eth0", &["device"], "0\n");
        assert!(!has_a_cable(scratch.path()));
        add("eth0", &["device"], "1\n");
        assert!(has_a_cable(scratch.path()));
        assert!(!has_a_cable(&scratch.join("none")));
    }

    // Recorded: nmcli 1.42.4, `nmcli --terse --fields DEVICE,TYPE,STATE device`.
    #[test]
    fn an_interface_is_one_of_a_radio() {
        let interfaces: Vec<_> = "wlan0:wifi:connected\nlo:loopback:connected (externally)\n"
            .lines()
            .filter_map(interface)
            .collect();
        assert_eq!(interfaces.len(), 1);
        assert_eq!(interfaces[0].state, "connected");
    }
}
