//! Web Push: the owner adds a device on the page, and a push service of the test decrypts what it gets, as a browser
//! does (RFC 8291). OpenSSL has the device's key, so the key agreement is checked by another implementation.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use serde_json::{Value, json};

use crate::owner_page::{form, get, proof, set_up};
use crate::support::agents::admit;
use crate::support::answer::Answer;
use crate::support::client::Client;
use crate::support::command::tell_by;
use crate::support::http_sink::{HttpSink, ReceivedRequest, SinkBehavior};
use crate::support::machine::{IN_TIME, wait_until};
use crate::support::server::{Directory, Server, server};

const PAGE: &str = "/owner/notifications";

/// The DER of a public key of P-256 before its point (RFC 5480).
const KEY_HEADER: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// A browser's subscription, with its private key.
struct Device {
    folder: Directory,
    public: Vec<u8>,
    auth: [u8; 16],
}

impl Device {
    fn new() -> Self {
        let folder = Directory::new();
        let key = folder.join("device.pem").display().to_string();
        let words = [
            "ecparam",
            "-name",
            "prime256v1",
            "-genkey",
            "-noout",
            "-out",
            &key,
        ];
        openssl(&words);
        let der = openssl(&["ec", "-in", &key, "-pubout", "-outform", "DER"]);
        let public = der[KEY_HEADER.len()..].to_vec();
        Self {
            folder,
            public,
            auth: *b"sixteen letters.",
        }
    }

    /// Decrypts a body, which has one record.
    fn decrypt(&self, body: &[u8]) -> Value {
        let (salt, rest) = body.split_at(16);
        assert_eq!(
            rest[..5],
            [0, 0, 0x10, 0, 65],
            "a record of 4096 bytes, and a key"
        );
        let (theirs, sealed) = rest[5..].split_at(65);
        let info = [b"WebPush: info\0", self.public.as_slice(), theirs].concat();
        let secret = Salt::new(HKDF_SHA256, &self.auth).extract(&self.agree(theirs));
        let material: [u8; 32] = expand(&secret, &info);
        let derived = Salt::new(HKDF_SHA256, salt).extract(&material);
        let key: [u8; 16] = expand(&derived, b"Content-Encoding: aes128gcm\0");
        let nonce: [u8; 12] = expand(&derived, b"Content-Encoding: nonce\0");
        let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key).unwrap());
        let nonce = Nonce::assume_unique_for_key(nonce);
        let mut record = sealed.to_vec();
        let text = key.open_in_place(nonce, Aad::empty(), &mut record).unwrap();
        serde_json::from_slice(text.strip_suffix(&[2]).unwrap()).unwrap()
    }

    fn agree(&self, theirs: &[u8]) -> Vec<u8> {
        let file = |name: &str| self.folder.join(name).display().to_string();
        fs::write(file("peer.der"), [&KEY_HEADER, theirs].concat()).unwrap();
        let to_pem = [
            "pkey",
            "-pubin",
            "-inform",
            "DER",
            "-in",
            &file("peer.der"),
            "-out",
            &file("peer.pem"),
        ];
        openssl(&to_pem);
        openssl(&[
            "pkeyutl",
            "-derive",
            "-inkey",
            &file("device.pem"),
            "-peerkey",
            &file("peer.pem"),
        ])
    }
}

fn openssl(words: &[&str]) -> Vec<u8> {
    let output = Command::new("openssl").args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    output.stdout
}

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

fn expand<const N: usize>(from: &Prk, info: &[u8]) -> [u8; N] {
    let mut derived = [0; N];
    let info = [info];
    let expanded = from.expand(&info, Length(N)).unwrap();
    expanded.fill(&mut derived).unwrap();
    derived
}

/// The signed-in owner on the page.
struct Owner {
    client: Client,
    cookie: String,
}

impl Owner {
    fn of(server: &Server) -> Self {
        let code = tell_by(&server.settings_file(), &["owner", "setup"]);
        let client = server.client();
        let cookie = set_up(&client, code["code"].as_str().unwrap());
        Self { client, cookie }
    }

    fn page(&self) -> String {
        get(&self.client, PAGE, &self.cookie).body
    }

    fn send(&self, fields: &[(&str, &str)]) -> Answer {
        let proof = proof(&get(&self.client, PAGE, &self.cookie));
        let whole = [fields, &[("proof", proof.as_str())]].concat();
        let form = form(&self.client, PAGE, &whole).header("cookie", &self.cookie);
        form.send_once()
    }

    fn add(&self, device: &Device, endpoint: &str) -> Answer {
        let (p256dh, auth) = (
            URL_SAFE_NO_PAD.encode(&device.public),
            URL_SAFE_NO_PAD.encode(device.auth),
        );
        self.send(&[("endpoint", endpoint), ("p256dh", &p256dh), ("auth", &auth)])
    }

    /// The id of the only device.
    fn device(&self) -> Option<String> {
        let page = self.page();
        let (_, rest) = page.split_once("value=\"push_")?;
        Some(format!("push_{}", rest.split('"').next()?))
    }
}

/// Starts a push service, whose authority is in the folder, and a server that may use it.
fn push_service(folder: &Directory) -> (HttpSink, Server) {
    let ca: PathBuf = folder.join("ca.pem");
    let service = HttpSink::secure(&ca);
    service.behave(SinkBehavior::Says(201, String::new()));
    let settings = format!(
        "[notify.devices]\nkind = \"push\"\nurl = \"{}\"\n",
        service.url("")
    );
    let server = server()
        .env("SSL_CERT_FILE", ca.to_str().unwrap())
        .settings(&settings)
        .start();
    (service, server)
}

/// Returns the value of a header.
fn header<'a>(request: &'a ReceivedRequest, name: &str) -> &'a str {
    let value = request.head.lines().find_map(|line| {
        let (found, value) = line.split_once(": ")?;
        found.eq_ignore_ascii_case(name).then_some(value)
    });
    value.unwrap_or_else(|| panic!("no {name}: {}", request.head))
}

/// Checks the token of RFC 8292, and that the page gives browsers its key.
fn check_token(request: &ReceivedRequest, service: &str, page: &str) {
    let token = header(request, "authorization");
    let (token, key) = token
        .strip_prefix("vapid t=")
        .unwrap()
        .split_once(", k=")
        .unwrap();
    assert!(page.contains(&format!("data-key=\"{key}\"")), "{key}");
    let decode = |text: &str| URL_SAFE_NO_PAD.decode(text).unwrap();
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, decode(key));
    public
        .verify(signed.as_bytes(), &decode(signature))
        .unwrap();
    let claims = decode(signed.split_once('.').unwrap().1);
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    assert_eq!(claims["aud"], service);
    assert!(claims["sub"].as_str().unwrap().starts_with("https://"));
}

#[test]
fn a_device_gets_a_request_that_only_it_can_read_until_its_subscription_ends() {
    let folder = Directory::new();
    let (service, server) = push_service(&folder);
    let (owner, device) = (Owner::of(&server), Device::new());
    let added = owner.add(&device, &service.url("/device/1"));
    assert_eq!(added.status, 303, "{added:?}");
    assert_eq!(
        added.header("location"),
        Some("/owner/notifications?said=device-added")
    );
    let first = service.after(1).remove(0);
    assert!(
        first.head.starts_with("POST /device/1 HTTP/1.1\r\n"),
        "{}",
        first.head
    );
    assert_eq!(header(&first, "content-encoding"), "aes128gcm");
    assert_eq!(header(&first, "ttl"), "86400");
    check_token(&first, &service.url(""), &owner.page());
    assert_eq!(
        device.decrypt(&first.bytes)["title"],
        "gatewren can reach you"
    );

    let agent = admit(&server, "claude-laptop", &["--policy", "suggest"]);
    let arguments = json!({ "command": "echo s3cret-argument" });
    let proposal =
        json!({ "tool": "system_shell", "arguments": arguments, "reason": "the log is full" });
    let proposed = agent.call("propose_change", proposal).send().result();
    assert_ne!(proposed["isError"], true, "{proposed}");
    let second = service.after(2).remove(1);
    assert_eq!(header(&second, "urgency"), "high");
    let message = device.decrypt(&second.bytes);
    assert_eq!(
        message["title"],
        "claude-laptop: Run a command on the server"
    );
    assert_eq!(message["body"], "“the log is full”");
    assert!(
        message["url"]
            .as_str()
            .unwrap()
            .starts_with("/owner/changes/chg_"),
        "{message}"
    );
    assert!(!message.to_string().contains("s3cret"), "{message}");

    service.behave(SinkBehavior::Says(503, String::new()));
    let id = owner.device().unwrap();
    let test = [("do", "test"), ("id", id.as_str())];
    let busy = owner.send(&test);
    assert!(busy.status == 400 && busy.body.contains("503"), "{busy:?}");
    assert!(owner.device().is_some(), "it is kept");
    service.behave(SinkBehavior::Says(410, String::new()));
    let gone = owner.send(&test);
    assert!(gone.body.contains("has ended its subscription"), "{gone:?}");
    assert_eq!(owner.device(), None);
    assert!(!server.log().contains("/device/1"), "the URL is a secret");
}

#[test]
fn a_subscription_that_leads_into_the_local_network_is_rejected() {
    let folder = Directory::new();
    let (service, server) = push_service(&folder);
    let other = HttpSink::plain();
    let (owner, device) = (Owner::of(&server), Device::new());
    let inside = format!("https://localhost:{}/x", other.address.port());
    for endpoint in [
        "https://127.0.0.1/x",
        "https://localhost/x",
        "https://192.168.1.1/x",
        "https://[::1]/x",
        "https://169.254.169.254/latest/meta-data",
        &inside,
        &other.url("/x"),
        &format!("{}@127.0.0.1/x", service.url("")),
        "x",
    ] {
        let answer = owner.add(&device, endpoint);
        assert_eq!(answer.status, 400, "{endpoint}: {answer:?}");
        assert!(
            answer.body.contains("was not added"),
            "{endpoint}: {}",
            answer.body
        );
        assert_eq!(owner.device(), None, "{endpoint}");
    }
    assert!(other.requests().is_empty() && service.requests().is_empty());
    let answer = owner.send(&[("do", "test"), ("id", "push_0")]);
    assert_eq!(answer.status, 404, "{answer:?}");
}

#[test]
fn the_owner_sets_an_ntfy_topic_on_the_page_and_tests_it() {
    let ntfy = HttpSink::plain();
    let server = server().policy("suggest").settings("").start();
    let owner = Owner::of(&server);
    let bad = owner.send(&[("do", "ntfy"), ("url", "ntfy.sh"), ("topic", "box")]);
    assert_eq!(bad.status, 400, "{bad:?}");
    let form = [("do", "ntfy"), ("url", &ntfy.url("")), ("topic", "box")];
    assert_eq!(owner.send(&form).status, 303);
    assert_eq!(owner.send(&[("do", "ntfy-test")]).status, 303);
    let sent = ntfy.after(1).remove(0).body;
    assert_eq!(
        (&sent["topic"], &sent["title"]),
        (&json!("box"), &json!("gatewren can reach you"))
    );
    let list = tell_by(&server.settings_file(), &["notify", "list"]);
    assert_eq!(list["channels"][0]["channel"], "ntfy", "{list}");
    let proposal =
        json!({ "tool": "system_shell", "arguments": { "command": "echo" }, "reason": "r" });
    assert_ne!(
        server
            .client()
            .call("propose_change", proposal)
            .send()
            .result()["isError"],
        true
    );
    assert_eq!(
        ntfy.after(2).remove(1).body["title"],
        "a change waits in the inbox"
    );
    assert_eq!(owner.send(&[("do", "ntfy-remove")]).status, 303);
    wait_until("it is gone", IN_TIME, || {
        !owner.page().contains("ntfy-test")
    });
}
