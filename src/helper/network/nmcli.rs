//! Queries `NetworkManager` through nmcli, and parses its output for programs (nmcli(1), `--terse`).
//!
//! Not over D-Bus. A status of 12 saved networks then takes 8 ms instead of 190, and names of any bytes are matched, but
//! that needs about 100 lines more for reading alone: nmcli's words for states and security, its errors, and its wait
//! for a scan.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use gatewren_base::sys::{Exit, neutralise, neutralise_line};
use gatewren_wire::operations::{OperationRefusal, WifiNetwork};

use crate::context::helper_context::HelperContext;
use crate::context::tools::{HostTool, run_to_end};

/// How long to wait for nmcli beyond its own timeout. Then it is killed.
const GRACE: Duration = Duration::from_secs(15);

/// The most saved networks that are read; more are ignored.
const MOST_SAVED: usize = 64;

/// The most networks in the list: the strongest ones.
const MOST_HEARD: usize = 64;

/// `NetworkManager`'s type of a wireless profile.
const WIRELESS: &str = "802-11-wireless";

/// nmcli's own timeout.
#[derive(Debug, Clone, Copy)]
pub struct NmcliTimeout(pub u8);

/// A saved network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedNetwork {
    /// The profile's id.
    pub uuid: String,
    /// The network's name; `None` if it is ambiguous.
    pub ssid: Option<String>,
    /// Whether it is in use.
    pub active: bool,
}

/// An access point in range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessPoint {
    /// The bytes of the network's name.
    pub ssid: Vec<u8>,
    /// The interface that receives it.
    pub interface: String,
    joined: bool,
    signal: u8,
    frequency: u32,
    /// Its security protocols.
    pub security: String,
}

/// Runs nmcli and returns its output.
///
/// # Errors
/// Contains nmcli's own error message.
pub async fn run(
    helper: &HelperContext,
    wait: NmcliTimeout,
    words: &[&str],
) -> Result<String, OperationRefusal> {
    let limit = wait.0.to_string();
    let fixed = ["--wait", &limit, "--terse"];
    let tool = HostTool::new("nmcli", fixed.iter().chain(words).copied());
    let time_limit = Duration::from_secs(wait.0.into()) + GRACE;
    let ran = timeout(time_limit, run_to_end(tool, Arc::clone(&helper.orphans))).await;
    let (exit, output) =
        ran.map_err(|_| OperationRefusal::failed("nmcli did not end in time"))??;
    if exit == Exit::Code(0) {
        return Ok(output);
    }
    Err(OperationRefusal::failed(error_message(&output)))
}

/// Returns the last line, which states the cause.
fn error_message(output: &str) -> String {
    let mut lines = output.lines().rev().map(str::trim);
    let last = lines.find(|line| !line.is_empty()).unwrap_or_default();
    let last = last.strip_prefix("Error: ").unwrap_or(last);
    let last = last.trim_end_matches('.');
    if last.is_empty() {
        return "nmcli failed and gave no reason".to_owned();
    }
    format!("NetworkManager reports: {}", neutralise(last))
}

/// Splits a line at `:`; a `\` escapes `:` and itself.
pub fn parts(line: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (c, parts.last_mut()) {
            (':', _) => parts.push(String::new()),
            ('\\', Some(part)) => part.extend(chars.next()),
            (c, Some(part)) => part.push(c),
            (_, None) => {}
        }
    }
    parts
}

/// Returns the saved wireless networks.
pub async fn list_saved(helper: &HelperContext) -> Result<Vec<SavedNetwork>, OperationRefusal> {
    let all = ["--fields", "UUID,TYPE,ACTIVE", "connection", "show"];
    let listed = run(helper, NmcliTimeout(5), &all).await?;
    let known = listed
        .lines()
        .filter_map(|line| match parts(line).as_slice() {
            [uuid, kind, active] if kind == WIRELESS && is_uuid(uuid) => {
                Some((uuid.clone(), active == "yes"))
            }
            _ => None,
        });
    let known: Vec<(String, bool)> = known.take(MOST_SAVED).collect();
    if known.is_empty() {
        return Ok(Vec::new());
    }
    let fields = "connection.uuid,802-11-wireless.ssid";
    let mut words = vec!["--fields", fields, "connection", "show"];
    words.extend(known.iter().flat_map(|(uuid, _)| ["uuid", uuid]));
    let shown = run(helper, NmcliTimeout(5), &words).await?;
    let named = ssids(&shown);
    let saved = known.into_iter().map(|(uuid, active)| {
        let own = named.iter().find(|(of, _)| *of == uuid);
        let ssid = own.and_then(|(_, ssid)| ssid.clone());
        SavedNetwork { uuid, ssid, active }
    });
    Ok(saved.collect())
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36 && text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
}

/// Returns the networks' names by profile id. nmcli does not escape values here: a name with a line feed could look
/// like the lines of another one. So a profile with more lines than expected gets no name.
fn ssids(shown: &str) -> Vec<(String, Option<String>)> {
    let mut found: Vec<(String, Vec<&str>)> = Vec::new();
    for line in shown.lines() {
        let uuid = line.strip_prefix("connection.uuid:");
        match (uuid.filter(|uuid| is_uuid(uuid)), found.last_mut()) {
            (Some(uuid), _) => found.push((uuid.to_owned(), Vec::new())),
            (None, Some((_, lines))) if !line.is_empty() => lines.push(line),
            _ => {}
        }
    }
    let named = found.into_iter().map(|(uuid, lines)| {
        let ssid = match lines.as_slice() {
            [line] => line.strip_prefix("802-11-wireless.ssid:"),
            _ => None,
        };
        (uuid, ssid.map(str::to_owned))
    });
    named.collect()
}

/// Returns the access points in range. With `scan` the radio scans first, unless it did so recently.
pub async fn find_points(
    helper: &HelperContext,
    scan: bool,
) -> Result<Vec<AccessPoint>, OperationRefusal> {
    let fields = "IN-USE,SSID-HEX,FREQ,SIGNAL,SECURITY,DEVICE";
    let rescan = if scan { "auto" } else { "no" };
    let words = [
        "--fields", fields, "device", "wifi", "list", "--rescan", rescan,
    ];
    let listed = run(helper, NmcliTimeout(20), &words).await?;
    Ok(listed.lines().filter_map(point).collect())
}

/// Parses a line of the list.
fn point(line: &str) -> Option<AccessPoint> {
    let parts = parts(line);
    let [joined, ssid, frequency, signal, security, interface] = parts.as_slice() else {
        return None;
    };
    let ssid = bytes(ssid)?;
    Some(AccessPoint {
        ssid,
        interface: neutralise(interface).into_owned(),
        joined: joined == "*",
        signal: signal.parse().ok()?,
        frequency: frequency.split(' ').next()?.parse().ok()?,
        security: neutralise(security).into_owned(),
    })
}

/// Decodes hexadecimal digits.
fn bytes(hex: &str) -> Option<Vec<u8>> {
    if !hex.is_ascii() || !hex.len().is_multiple_of(2) {
        return None;
    }
    let pairs = hex.as_bytes().chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(pair, 16).ok()
    });
    pairs.collect()
}

/// Groups access points into networks, the strongest first. Hidden networks are left out.
pub fn networks(points: &[AccessPoint], saved: &[SavedNetwork]) -> Vec<WifiNetwork> {
    let mut sorted: Vec<&AccessPoint> = points
        .iter()
        .filter(|point| !point.ssid.is_empty())
        .collect();
    sorted.sort_by_key(|point| std::cmp::Reverse(point.signal));
    let mut networks: Vec<(&[u8], WifiNetwork)> = Vec::new();
    for point in sorted {
        let known = networks.iter_mut().find(|(ssid, network)| {
            *ssid == point.ssid.as_slice() && network.security == point.security
        });
        if let Some((_, network)) = known {
            network.access_points += 1;
            network.joined |= point.joined;
        } else if networks.len() < MOST_HEARD {
            networks.push((&point.ssid, network(point, saved)));
        }
    }
    networks.into_iter().map(|(_, network)| network).collect()
}

fn network(point: &AccessPoint, saved: &[SavedNetwork]) -> WifiNetwork {
    let text = String::from_utf8_lossy(&point.ssid);
    let shown = neutralise_line(&text);
    let plain = shown.as_bytes() == point.ssid;
    WifiNetwork {
        saved: plain && saved.iter().any(|one| one.ssid.as_deref() == Some(&shown)),
        ssid_hex: (!plain).then(|| hexadecimal(&point.ssid)),
        ssid: shown,
        signal_percent: point.signal.min(100),
        frequency_mhz: point.frequency,
        security: point.security.clone(),
        access_points: 1,
        joined: point.joined,
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::super::nmcli::*;

    /// Recorded: nmcli 1.42.4 of Debian 12 prints these lines, word for word, for `nmcli --terse --fields
    /// IN-USE,SSID-HEX,FREQ,SIGNAL,SECURITY,DEVICE device wifi list`. The access points were those of python-dbusmock
    /// 0.28.7's `NetworkManager`, as the recording machine had no radio.
    const LIST: &str = include_str!("recorded/nmcli-wifi-list.txt");

    /// The same for `nmcli --terse --fields connection.uuid,802-11-wireless.ssid connection show uuid ... uuid ...`,
    /// from `NetworkManager` 1.42.4 itself. The third network's name has two lines.
    const SHOWN: &str = include_str!("recorded/nmcli-connections.txt");

    #[test]
    fn networks_are_told_whatever_they_are_called() {
        let points: Vec<AccessPoint> = LIST.lines().filter_map(point).collect();
        assert_eq!(points.len(), LIST.lines().count());
        let saved = [SavedNetwork {
            uuid: String::new(),
            ssid: Some("Home:Net\\5".to_owned()),
            active: true,
        }];
        let networks = networks(&points, &saved);
        let names: Vec<&str> = networks
            .iter()
            .map(|network| network.ssid.as_str())
            .collect();
        assert_eq!(
            names,
            [
                "Home:Net\\5",
                "Caf\u{e9} Z\u{fc}rich",
                "--help",
                "^[[31mred<U+0007> <U+0000>\u{fffd}\u{fffd}",
                "Office"
            ]
        );
        let [home, _, open, odd, office] = networks.as_slice() else {
            panic!("{networks:?}");
        };
        assert_eq!(
            (home.access_points, home.signal_percent, home.frequency_mhz),
            (2, 90, 5240)
        );
        assert!(
            home.joined && home.saved && home.ssid_hex.is_none(),
            "{home:?}"
        );
        assert_eq!(
            (open.security.as_str(), open.joined, open.saved),
            ("", false, false)
        );
        assert_eq!(odd.ssid_hex.as_deref(), Some("1b5b33316d726564070a00fffe"));
        assert_eq!(office.security, "WPA1 WPA2 802.1X");
        let none: Vec<String> = networks
            .iter()
            .map(|one| one.ssid.replace('\u{fffd}', ""))
            .collect();
        assert!(!none.concat().contains(char::is_control));
    }

    #[test]
    fn a_saved_network_takes_no_other_ones_name() {
        let uuid = |end: char| format!("6e8d9d2e-4a5b-4d3e-9f00-0123456789a{end}");
        let name = |name: &str| Some(name.to_owned());
        let expected = [
            (uuid('1'), name("Caf\u{e9}:\\0")),
            (uuid('2'), name("--help")),
            (uuid('3'), None),
        ];
        assert_eq!(ssids(SHOWN), expected);
    }

    #[test]
    fn odd_lines_are_passed_over() {
        for odd in [
            "",
            ":",
            "*:4:2437 MHz:9:WPA2:wlan0",
            "*:zz:2437 MHz:9:WPA2:wlan0",
            "*::x:9:WPA2:wlan0",
            "*::1 MHz:999:a:b",
        ] {
            assert_eq!(point(odd), None, "{odd}");
        }
        assert_eq!(parts("a\\:b:\\\\:"), ["a:b", "\\", ""]);
        assert_eq!(parts("a\\"), ["a"]);
    }

    #[test]
    fn its_last_line_says_why() {
        // Recorded: nmcli 1.42.4, without a radio.
        let output = "Error: Connection activation failed: No suitable device found for this connection (device lo not \
                    available because profile is not compatible with device (connection type is not \"loopback\")).\n";
        assert!(
            error_message(output)
                .starts_with("NetworkManager reports: Connection activation failed: No suitable")
        );
        assert_eq!(
            error_message("a\nError: NetworkManager is not running.\n\n"),
            "NetworkManager reports: NetworkManager is not running"
        );
        assert_eq!(error_message(""), "nmcli failed and gave no reason");
        assert!(!error_message("\u{1b}[2J").contains('\u{1b}'));
    }
}
