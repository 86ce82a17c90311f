//! Checks when the certificate expires.

use super::finding::Finding;
use gatewren_base::config::{Settings, TlsMode};
use gatewren_base::sys::{now_ms, rfc3339};
use gatewren_gate::http::CertificateFacts;
use gatewren_server::app::{certificate, server_names};

/// Our own authority renews 30 days before the end, so fewer days left means that renewal failed.
const OWN_DAYS: i64 = 29;

/// ACME clients replace theirs before this many days are left.
const GIVEN_DAYS: i64 = 10;

/// The names of this host that the certificate does not cover.
fn find_uncovered(settings: &Settings, facts: &CertificateFacts) -> Option<String> {
    let names = server_names(&settings.names).into_iter();
    let uncovered: Vec<String> = names
        .filter(|name| name.parse().is_ok_and(|subject| !facts.covers(&subject)))
        .collect();
    (!uncovered.is_empty()).then(|| uncovered.join(" "))
}

/// Checks the certificate that the settings name.
pub fn look(settings: &Settings) -> Finding {
    const CHECK: &str = "certificate";
    let own = settings.tls.mode == TlsMode::Own;
    let facts = certificate(settings)
        .map_err(|e| e.to_string())
        .and_then(|source| {
            CertificateFacts::in_file(&source.certificate()).map_err(|e| e.to_string())
        });
    let facts = match facts {
        Ok(facts) => facts,
        Err(cause) => return Finding::skipped(CHECK, cause).with("run this as root"),
    };
    let (until, now) = (facts.until(), i64::try_from(now_ms() / 1_000).unwrap_or(0));
    let days = (until - now) / 86_400;
    let when = rfc3339(u64::try_from(until).unwrap_or(0).saturating_mul(1_000));
    let seen = format!("it is valid for {days} days, until {when}");
    let (least, remedy) = if own {
        (
            OWN_DAYS,
            "gatewren cert renew; journalctl -u gatewren shows why it was not renewed automatically",
        )
    } else {
        (
            GIVEN_DAYS,
            "renew it with the program that created it, then gatewren cert install",
        )
    };
    if own
        && until > now
        && days >= least
        && let Some(names) = find_uncovered(settings, &facts)
    {
        let seen = format!("the certificate does not cover {names}");
        return Finding::warning(
            CHECK,
            seen,
            "gatewren cert show explains why and what to do",
        );
    }
    if until <= now {
        Finding::problem(CHECK, format!("it expired at {when}"), remedy)
    } else if days < least {
        Finding::warning(CHECK, seen, remedy)
    } else {
        Finding::good(CHECK, seen)
    }
}
