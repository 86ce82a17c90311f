//! A proxy at the edge that signs the user's identity: its token is required too, and checked before the agent's.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};

use crate::support::answer::Answer;
use crate::support::client::Client;
use crate::support::machine::{IN_TIME, wait_until};
use crate::support::server::{Directory, Server, server};

/// An identity provider's key.
struct Signer {
    name: &'static str,
    pair: EcdsaKeyPair,
}

impl Signer {
    fn new(name: &'static str) -> Self {
        let (random, way) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(way, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(way, pkcs8.as_ref(), &random).unwrap();
        Self { name, pair }
    }

    fn public(&self) -> Value {
        let point = self.pair.public_key().as_ref();
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        json!({ "kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": self.name,
                "x": text(&point[1..33]), "y": text(&point[33..]) })
    }

    /// Returns a token that is valid for an hour from now, with one claim replaced.
    fn token_with(&self, name: &str, value: Value) -> String {
        let now = std::time::SystemTime::UNIX_EPOCH
            .elapsed()
            .unwrap()
            .as_secs();
        let mut claims = json!({ "sub": "me", "iss": "https://idp.test", "aud": "gatewren-test", "exp": now + 3600 });
        claims[name] = value;
        let text = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let header = json!({ "alg": "ES256", "kid": self.name, "typ": "JWT" });
        let signed = format!("{}.{}", text(&header), text(&claims));
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes());
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.unwrap()))
    }

    fn token(&self) -> String {
        self.token_with("x", json!(1))
    }
}

/// The endpoint of an identity provider's keys; it runs until the test process exits.
struct Provider {
    address: SocketAddr,
    keys: Arc<Mutex<Value>>,
    is_down: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
}

impl Provider {
    fn with(signers: &[&Signer]) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let provider = Self {
            address: socket.local_addr().unwrap(),
            keys: Arc::default(),
            is_down: Arc::default(),
            asked: Arc::default(),
        };
        provider.publish(signers);
        let (keys, is_down, asked) = (
            provider.keys.clone(),
            provider.is_down.clone(),
            provider.asked.clone(),
        );
        thread::spawn(move || {
            for connection in socket.incoming() {
                asked.fetch_add(1, Ordering::Relaxed);
                // While it is down, connections are closed without a response.
                if !is_down.load(Ordering::Relaxed) {
                    let keys = keys.lock().unwrap().to_string();
                    let _ = answer(connection.unwrap(), &keys);
                }
            }
        });
        provider
    }

    fn publish(&self, signers: &[&Signer]) {
        let keys: Vec<Value> = signers.iter().map(|signer| signer.public()).collect();
        *self.keys.lock().unwrap() = json!({ "keys": keys });
    }

    fn server(&self, refresh: &str) -> Server {
        behind(&format!("http://{}/keys", self.address), refresh)
    }
}

fn answer(mut connection: TcpStream, keys: &str) -> std::io::Result<()> {
    let mut asked = Vec::new();
    while !asked.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        connection.read_exact(&mut byte)?;
        asked.extend(byte);
    }
    let length = keys.len();
    write!(
        connection,
        "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{keys}"
    )
}

fn behind(jwks: &str, refresh: &str) -> Server {
    let settings = format!(
        "[edge_jwt]\nheader = \"X-Edge\"\njwks = \"{jwks}\"\naudience = \"gatewren-test\"\n\
         issuer = \"https://idp.test\"\nrefresh = \"{refresh}\"\n"
    );
    server().policy("observe").settings(&settings).start()
}

fn list(client: &Client, token: &str) -> Answer {
    client.modern("tools/list").header("x-edge", token).send()
}

fn refused(answer: &Answer, error: &str, words: &str) {
    assert_eq!(answer.status, 401, "{answer:?}");
    assert_eq!(answer.json()["error"], error, "{answer:?}");
    assert!(answer.body.contains(words), "{answer:?}");
}

#[test]
fn the_edge_is_asked_before_the_agent_and_as_well() {
    let signer = Signer::new("a");
    let provider = Provider::with(&[&signer]);
    let server = provider.server("1h");
    let token = signer.token();
    for (way, client) in server.clients() {
        let (edge, agent) = ("edge_identity_required", "agent_required");
        let stranger = client.clone().with_token("gw_x");
        assert_eq!(list(&client, &token).status, 200, "{way}");
        refused(&list(&stranger, &token), agent, "token");
        refused(&client.modern("tools/list").send(), edge, "x-edge");
        refused(&stranger.modern("tools/list").send(), edge, "x-edge");
        let twice = client.modern("tools/list").header("x-edge", &token);
        refused(
            &twice.also("x-edge", token.as_bytes()).send(),
            edge,
            "x-edge",
        );
        refused(&list(&client, "x.y.z"), edge, "JSON Web Token");
        for (claim, value, words) in [
            ("aud", json!("other"), "another application"),
            (
                "iss",
                json!("https://evil.test"),
                "another identity provider",
            ),
            ("exp", json!(1), "expired"),
            ("nbf", json!(1_u64 << 40), "not valid yet"),
        ] {
            refused(
                &list(&client, &signer.token_with(claim, value)),
                edge,
                words,
            );
        }
        let (header, rest) = token.split_once('.').unwrap();
        assert!(!header.is_empty());
        for alg in ["none", "HS256"] {
            let header = URL_SAFE_NO_PAD.encode(format!("{{\"alg\":\"{alg}\"}}"));
            refused(&list(&client, &format!("{header}.{rest}")), edge, "RS256");
        }
        let open = client.request("GET", "/health").without("authorization");
        assert_eq!(open.send().status, 200, "it asks for nobody");
        assert_eq!(client.request("GET", "/metrics").send().status, 401);
    }
    assert!(!server.log().contains(&token));
}

#[test]
fn an_unknown_key_is_asked_for_once_and_not_by_everybody() {
    let (signer, stranger) = (Signer::new("a"), Signer::new("b"));
    let provider = Provider::with(&[&signer]);
    let server = provider.server("1h");
    let client = server.client();
    for _ in 0..20 {
        let answer = list(&client, &stranger.token());
        refused(&answer, "edge_identity_required", "not one of");
    }
    assert_eq!(list(&client, &signer.token()).status, 200);
    assert_eq!(provider.asked.load(Ordering::Relaxed), 1);
}

#[test]
fn keys_that_are_exchanged_are_followed() {
    let (first, second) = (Signer::new("a"), Signer::new("b"));
    let provider = Provider::with(&[&first]);
    let server = provider.server("1s");
    let client = server.client();
    assert_eq!(list(&client, &first.token()).status, 200);
    provider.publish(&[&second]);
    wait_until("the new key counts", IN_TIME, || {
        list(&client, &second.token()).status == 200
    });
    wait_until("the old key counts no more", IN_TIME, || {
        list(&client, &first.token()).status == 401
    });
}

#[test]
fn a_provider_that_stays_out_of_reach_is_believed_no_longer() {
    let signer = Signer::new("a");
    let provider = Provider::with(&[&signer]);
    let server = provider.server("1s");
    let client = server.client();
    assert_eq!(list(&client, &signer.token()).status, 200);
    provider.is_down.store(true, Ordering::Relaxed);
    wait_until("its keys count no more", IN_TIME, || {
        list(&client, &signer.token()).status == 401
    });
    let answer = list(&client, &signer.token());
    refused(&answer, "edge_identity_required", "not available");
    provider.is_down.store(false, Ordering::Relaxed);
    wait_until("it is there again", IN_TIME, || {
        list(&client, &signer.token()).status == 200
    });
}

#[test]
fn keys_may_stand_in_a_file() {
    let home = Directory::new();
    let file = home.join("keys.json");
    let signer = Signer::new("a");
    let server = behind(file.to_str().unwrap(), "1s");
    let client = server.client();
    let answer = list(&client, &signer.token());
    refused(&answer, "edge_identity_required", "not available");
    std::fs::write(&file, json!({ "keys": [signer.public()] }).to_string()).unwrap();
    wait_until("they are read", IN_TIME, || {
        list(&client, &signer.token()).status == 200
    });
}
