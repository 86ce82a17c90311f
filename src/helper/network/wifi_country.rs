//! The radio's regulatory country: read and set through `iw`, and stored for the next boot.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use gatewren_base::sys::InsideRoot;
use gatewren_wire::operations::{CountryCode, OperationRefusal};

use crate::context::helper_context::HelperContext;
use crate::context::programs::find;
use crate::context::tools::{HostTool, output};

/// How often to check whether the kernel has accepted it.
const LOOKS: u32 = 10;

/// The pause between two checks.
const PAUSE: Duration = Duration::from_millis(300);

/// The file with the option for the kernel module (modprobe.d(5)), below `/etc`.
const KEPT: (&str, &str) = ("modprobe.d", "gatewren-wifi.conf");

/// Returns the current country, if it is known.
pub async fn now(helper: &HelperContext) -> Option<String> {
    find("iw").ok()?;
    country(&iw(helper, &["reg", "get"]).await.ok()?)
}

/// Parses the country of the whole host: the first one in the output.
fn country(output: &str) -> Option<String> {
    let mut lines = output.lines();
    let line = lines.find_map(|line| line.strip_prefix("country "))?;
    let code = line.split(':').next()?.trim();
    let plain = code.len() == 2 && code.bytes().all(|b| b.is_ascii_alphanumeric());
    plain.then(|| code.to_owned())
}

/// Sets the country, and stores it if the kernel has rules for it. Otherwise restores the previous one.
pub async fn set(helper: &HelperContext, wanted: &CountryCode) -> Result<(), OperationRefusal> {
    let wanted = wanted.as_str();
    let before = now(helper).await;
    iw(helper, &["reg", "set", wanted]).await?;
    for _ in 0..LOOKS {
        if now(helper).await.as_deref() == Some(wanted) {
            return store_country(wanted);
        }
        // The kernel looks it up asynchronously.
        sleep(PAUSE).await;
    }
    if let Some(before) = before {
        // Best effort: the error below is the one that matters.
        let _ = iw(helper, &["reg", "set", &before]).await;
    }
    Err(OperationRefusal::failed(format!(
        "the kernel rejected {wanted}: it has no rules for this country (apt install wireless-regdb), or there is no \
         radio here"
    )))
}

fn store_country(country: &str) -> Result<(), OperationRefusal> {
    let text = format!(
        "# Written by gatewren's wifi_country: the country whose rules apply to the radio.\noptions cfg80211 \
         ieee80211_regdom={country}\n"
    );
    let (folder, file) = KEPT;
    let etc = InsideRoot::open(std::path::Path::new("/etc"));
    let written = etc.and_then(|etc| etc.write(folder, file, text.as_bytes(), None));
    written.map(drop).map_err(|e| {
        OperationRefusal::failed(format!(
            "it is set until the next boot only; /etc/{folder}/{file} cannot be written: {e}"
        ))
    })
}

async fn iw(helper: &HelperContext, words: &[&str]) -> Result<String, OperationRefusal> {
    let tool = HostTool::new("iw", words.iter().copied());
    output(&tool, &Arc::clone(&helper.orphans)).await
}

#[cfg(test)]
mod tests {
    use super::super::wifi_country::*;

    #[test]
    fn the_machines_own_country_is_told() {
        // In the format of iw 5.19 (reg.c): first the host's country, then that of a radio with its own.
        let output = "global\ncountry AT: DFS-ETSI\n\t(2402 - 2482 @ 40), (N/A, 20), (N/A)\n\nphy#0 (self-managed)\n\
                    country US: DFS-UNSET\n";
        assert_eq!(country(output).as_deref(), Some("AT"));
        assert_eq!(
            country("global\ncountry 00: DFS-UNSET\n").as_deref(),
            Some("00")
        );
        // Recorded: iw 5.19 on a kernel without radios.
        assert_eq!(country("nl80211 not found.\n"), None);
        assert_eq!(country("country \u{1b}[: x\n"), None);
    }
}
