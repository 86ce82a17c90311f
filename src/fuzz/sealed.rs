//! State and session ids that clients return: opened exactly as sealed, only for the same caller, and only
//! unchanged.

use ring::hmac;
use serde_json::{Map, Value, json};

use super::input::{parts, text};
use gatewren_server::dispatch::{StateSigner, digest_of};
use gatewren_server::transport::SessionClaims;
use gatewren_wire::protocol::{ClientCapabilities, Version};

const KEY: [u8; 32] = [7; 32];

/// Input parts: a caller, another caller, the request's parameters as JSON, other parameters, the state as JSON,
/// a forgery.
pub fn request_state(data: &[u8]) {
    let [who, other, asked, otherwise, state, forged] = parts(data);
    let (Some(who), Some(other)) = (text(who), text(other)) else {
        return;
    };
    let asked = object(asked);
    let digest = digest_of("tools/call", &asked.clone().into());
    is_of_the_salient_alone(&asked, &object(otherwise), &digest);
    let sealer = StateSigner::new(&KEY);
    if let Some(forged) = text(forged) {
        assert!(sealer.open(forged, who, &digest).is_err(), "{forged:?}");
    }
    let Ok(state) = serde_json::from_slice::<Value>(state) else {
        return;
    };
    let carried = sealer.seal(state.clone(), who, &digest);
    assert_eq!(sealer.open(&carried, who, &digest), Ok(state));
    assert!(other == who || sealer.open(&carried, other, &digest).is_err());
    let elsewhere = digest_of("prompts/get", &asked.into());
    assert!(sealer.open(&carried, who, &elsewhere).is_err());
    assert!(
        StateSigner::new(&[8; 32])
            .open(&carried, who, &digest)
            .is_err()
    );
    for altered in alterations(&carried, forged) {
        assert!(sealer.open(&altered, who, &digest).is_err(), "{altered:?}");
    }
}

/// Asserts that two requests have the same digest exactly if they request the same.
fn is_of_the_salient_alone(one: &Map<String, Value>, other: &Map<String, Value>, digest: &str) {
    let salient = |params: &Map<String, Value>| {
        let mut params = params.clone();
        params.remove("_meta");
        params
    };
    let same = salient(one) == salient(other);
    assert_eq!(
        digest_of("tools/call", &other.clone().into()) == digest,
        same,
        "{one:?} {other:?}"
    );
    assert_eq!(digest_of("tools/call", &salient(one).into()), digest);
}

/// Input parts: an agent, another agent, the capabilities that the client declares, a forgery.
pub fn session_ids(data: &[u8]) {
    let [agent, other, declared, forged] = parts(data);
    let (Some(agent), Some(other)) = (text(agent), text(other)) else {
        return;
    };
    // Agents' ids are issued by us, and short.
    let agent: String = agent.chars().take(64).collect();
    let key = hmac::Key::new(hmac::HMAC_SHA256, &KEY);
    if let Some(forged) = text(forged) {
        assert!(SessionClaims::verify(forged, &key).is_none(), "{forged:?}");
    }
    for version in [
        Version::V2025_03_26,
        Version::V2025_06_18,
        Version::V2025_11_25,
    ] {
        let claims = SessionClaims::new(&agent, version, &object(declared));
        let instance = if agent.len() % 2 == 1 { "b" } else { "" };
        let id = claims.sign(instance, &key);
        assert!(id.bytes().all(|b| b.is_ascii_graphic()), "{id:?}");
        let Some(read) = SessionClaims::verify(&id, &key) else {
            panic!("{id:?} is not read again");
        };
        assert_eq!(read, claims);
        assert_eq!(
            (read.version(), read.agent.as_str()),
            (version, agent.as_str())
        );
        assert!(agent == other || read.agent != other);
        assert_eq!(
            askable(&read.capabilities()),
            expected(version, &object(declared)),
            "a session can be asked for what its client declared and its revision has"
        );
        for altered in alterations(&id, forged) {
            assert!(
                SessionClaims::verify(&altered, &key).is_none(),
                "{altered:?}"
            );
        }
        let foreign = hmac::Key::new(hmac::HMAC_SHA256, &[8; 32]);
        assert!(SessionClaims::verify(&id, &foreign).is_none());
    }
}

/// The requests that a client supports, given the capabilities that it declares in a session of this revision.
fn expected(version: Version, declared: &Map<String, Value>) -> [bool; 4] {
    let [sampling, roots, form, url] = askable(&ClientCapabilities::new(declared.clone()));
    match version {
        Version::V2025_03_26 => [sampling, roots, false, false],
        Version::V2025_06_18 => [sampling, roots, declared.contains_key("elicitation"), false],
        _ => [sampling, roots, form, url],
    }
}

/// Which of our requests a client supports.
fn askable(client: &ClientCapabilities) -> [bool; 4] {
    let requests = [
        ("sampling/createMessage", json!({})),
        ("roots/list", json!({})),
        ("elicitation/create", json!({})),
        ("elicitation/create", json!({ "mode": "url" })),
    ];
    requests.map(|(method, params)| client.require(method, &params).is_ok())
}

fn object(data: &[u8]) -> Map<String, Value> {
    serde_json::from_slice(data).unwrap_or_default()
}

/// Texts that differ from a sealed one: with one flipped bit, at the position that each byte pair of `choice`
/// gives, shortened, or extended.
fn alterations(sealed: &str, choice: &[u8]) -> Vec<String> {
    let mut altered = vec![
        format!("{sealed}="),
        format!("{sealed}A"),
        format!("{sealed}."),
        format!(" {sealed}"),
        sealed.replacen('.', "..", 1),
        sealed.to_lowercase(),
        sealed.replace('-', "+"),
    ];
    for pair in choice.chunks(2).take(32) {
        let bits = pair
            .iter()
            .fold(0_usize, |bits, byte| bits * 256 + usize::from(*byte));
        let mut bytes = sealed.as_bytes().to_vec();
        let at = (bits / 8) % bytes.len().max(1);
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= 1 << (bits % 8);
        }
        altered.extend(String::from_utf8(bytes));
        altered.extend(sealed.get(..at).map(str::to_owned));
    }
    // Changing case or characters can leave a text unchanged.
    altered.retain(|text| text != sealed);
    altered
}
