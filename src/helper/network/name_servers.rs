//! Sets the host's name servers, and restores the previous ones if none of the new ones responds.

use std::fs;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use gatewren_base::sys::{Exit, neutralise, random_bytes};
use gatewren_wire::operations::{
    HostProbe, NameServers, OperationEnd, OperationRefusal, Probe, ProbeAnswer, RefusalCode,
};

use super::resolver_files::{ResolverManager, addresses, owner, search};
use crate::context::helper_context::HelperContext;
use crate::context::operation_context::OperationContext;
use crate::context::tools::{HostTool, run_to_end};
use crate::processes::commands::require_root;
use crate::processes::step_error::operation_end;

/// The directory of settings.
const ETC: &str = "/etc";

/// The file that programs read.
const RESOLV_CONF: &str = "/etc/resolv.conf";

/// How long one name server may take to respond.
const WAIT_MS: u32 = 2000;

/// How often to check whether the host can resolve names now: applying the change takes time.
const LOOKS: u32 = 5;

/// The pause between two checks.
const PAUSE: Duration = Duration::from_secs(1);

/// How long a service may take to reload its files.
const RELOAD_TIME: Duration = Duration::from_secs(20);

/// The query: the name servers of the root, which every name server knows or looks up (RFC 1035, section 4).
const QUESTION: [u8; 15] = [1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1];

/// Held during a change: one at a time.
static TURN: Mutex<()> = Mutex::const_new(());

/// Sets the name servers, or uses those that the network announces.
pub async fn set(
    context: &mut OperationContext<'_>,
    servers: &NameServers,
) -> Result<OperationEnd, OperationRefusal> {
    let helper = context.helper;
    require_root()?;
    let owner = owner(Path::new("/"))?;
    let turn = TURN.try_lock().map_err(|_| {
        let message = "another call is changing the name servers; try again later";
        OperationRefusal::new(RefusalCode::Busy, message)
    })?;
    let (helper, servers) = (Arc::clone(helper), servers.all().to_vec());
    // In its own task: a change that has begun is checked to the end, even if the caller disconnects.
    let done = context.run_change(async move {
        let _turn = turn;
        change(&helper, owner, servers).await
    });
    operation_end(done.await)
}

async fn change(
    helper: &HelperContext,
    owner: ResolverManager,
    servers: Vec<IpAddr>,
) -> Result<(), OperationRefusal> {
    let etc = Path::new(ETC);
    let now = match fs::read_to_string(RESOLV_CONF) {
        Err(e) if e.kind() == ErrorKind::InvalidData => {
            let words = format!("{RESOLV_CONF} is not plain text; nothing was changed");
            return Err(OperationRefusal::failed(words));
        }
        now => now.unwrap_or_default(),
    };
    let kept = owner.read_contents(etc)?;
    let text = owner
        .text(&servers, &now, &search(&now))
        .map(String::into_bytes);
    if text == kept {
        return Ok(());
    }
    // Working name servers are not replaced by ones that do not respond.
    if !servers.is_empty() && !any_answers(servers.clone()).await {
        return Err(OperationRefusal::failed(
            "none of these name servers answers; nothing was changed. Test each with dns_query",
        ));
    }
    let could_ask = any_answers(addresses(&now)).await;
    let mut changed = owner.put(etc, text.as_deref());
    if changed.is_ok() {
        changed = reload(helper, owner).await;
    }
    if changed.is_ok() && (can_ask().await || servers.is_empty() && !could_ask) {
        return Ok(());
    }
    owner.put(etc, kept.as_deref())?;
    reload(helper, owner).await?;
    changed?;
    Err(OperationRefusal::failed(if servers.is_empty() {
        "no name server from the network answers; the previous ones were restored"
    } else {
        "the host got no answer from these name servers; the previous ones were restored"
    }))
}

/// Makes the service that owns the file reload it.
async fn reload(helper: &HelperContext, owner: ResolverManager) -> Result<(), OperationRefusal> {
    let service = "systemd-resolved.service";
    let commands: &[(&'static str, &[&str])] = match owner {
        // It reads its files when it starts. `reset-failed` first: systemd would not start it if it was restarted
        // often lately.
        ResolverManager::Resolved => &[
            ("systemctl", &["reset-failed", service]),
            ("systemctl", &["restart", service]),
        ],
        ResolverManager::NetworkManager => &[("nmcli", &["general", "reload"])],
        ResolverManager::File => &[],
    };
    for (name, words) in commands {
        let tool = HostTool::new(name, words.iter().copied());
        let ran = timeout(RELOAD_TIME, run_to_end(tool, Arc::clone(&helper.orphans))).await;
        let (exit, output) =
            ran.map_err(|_| OperationRefusal::failed(format!("{name} did not end in time")))??;
        if exit != Exit::Code(0) {
            let output = neutralise(output.trim()).into_owned();
            return Err(OperationRefusal::failed(format!(
                "{name} {}: {output}",
                words.join(" ")
            )));
        }
    }
    Ok(())
}

/// Returns whether names can be resolved the way programs do it.
async fn can_ask() -> bool {
    for look in 0..LOOKS {
        if look > 0 {
            sleep(PAUSE).await;
        }
        let now = fs::read_to_string(RESOLV_CONF).unwrap_or_default();
        if any_answers(addresses(&now)).await {
            return true;
        }
    }
    false
}

async fn any_answers(servers: Vec<IpAddr>) -> bool {
    let asked = spawn_blocking(move || servers.into_iter().take(3).any(answers));
    asked.await.unwrap_or(false)
}

/// Returns whether a name server responds with a usable answer.
fn answers(address: IpAddr) -> bool {
    let Ok(number) = random_bytes::<2>() else {
        return false;
    };
    let question = [&number[..], &QUESTION].concat();
    let probe = HostProbe {
        address,
        probe: Probe::Name(STANDARD.encode(question)),
        wait_ms: WAIT_MS,
    };
    let Ok(probed) = probe.run(true) else {
        return false;
    };
    let message = STANDARD.decode(&probed.message).unwrap_or_default();
    probed.answer == ProbeAnswer::Yes && is_good(&message)
}

/// Returns whether a response is usable: the name exists or does not exist. A failure or a refusal is not usable.
fn is_good(message: &[u8]) -> bool {
    message
        .get(3)
        .is_some_and(|flags| [0, 3].contains(&(flags & 0x0f)))
}

#[cfg(test)]
mod tests {
    use super::super::name_servers::*;

    #[test]
    fn a_server_that_refuses_is_none() {
        assert!(is_good(&[0, 1, 0x81, 0x80]) && is_good(&[0, 1, 0x81, 0x83]));
        for code in [1, 2, 4, 5] {
            assert!(!is_good(&[0, 1, 0x81, 0x80 | code]), "{code}");
        }
        assert!(!is_good(&[]));
    }

    #[test]
    fn the_question_is_one_of_a_resolver() {
        let question = [&[0, 7][..], &QUESTION].concat();
        assert_eq!(question.len(), 12 + 1 + 4);
        assert_eq!(
            question[2..4],
            [1, 0],
            "recursion is wanted, and nothing else"
        );
    }
}
