//! A server that receives the messages to the owner: an HTTP server for one test, with or without TLS.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;

use crate::support::machine::{IN_TIME, wait_until};

/// The way it responds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SinkBehavior {
    /// With this status and these headers.
    Says(u16, String),
    /// With this document.
    Gives(String),
    /// Not at all, and it keeps the connection open.
    Silent,
    /// One byte a second, endlessly.
    Drips,
    /// With bytes that are not HTTP.
    Babbles,
}

/// A request that it received.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    /// The request line and headers.
    pub head: String,
    /// The body, if it is JSON.
    pub body: Value,
    /// The body as it was sent.
    pub bytes: Vec<u8>,
}

/// A server for one test.
pub struct HttpSink {
    pub address: SocketAddr,
    scheme: &'static str,
    letters: Arc<Mutex<Vec<ReceivedRequest>>>,
    manner: Arc<Mutex<SinkBehavior>>,
}

impl HttpSink {
    /// Starts one without TLS.
    pub fn plain() -> Self {
        Self::start("http", None)
    }

    /// Starts one with a certificate for `localhost`, and writes its certificate authority to this file.
    pub fn secure(ca_file: &Path) -> Self {
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca_key = KeyPair::generate().unwrap();
        let ca = authority.self_signed(&ca_key).unwrap();
        std::fs::write(ca_file, ca.pem()).unwrap();
        let issuer = Issuer::new(authority, ca_key);
        let key = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let leaf = leaf.signed_by(&key, &issuer).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![leaf.der().clone()], key)
            .unwrap();
        Self::start("https", Some(Arc::new(config)))
    }

    fn start(scheme: &'static str, tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let letters: Arc<Mutex<Vec<ReceivedRequest>>> = Arc::default();
        let manner = Arc::new(Mutex::new(SinkBehavior::Says(200, String::new())));
        let (kept, how) = (letters.clone(), manner.clone());
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, tls) = (stream.unwrap(), tls.clone());
                let (kept, how) = (kept.clone(), how.clone());
                thread::spawn(move || match tls {
                    None => serve(stream, &kept, &how),
                    Some(config) => {
                        let connection = ServerConnection::new(config).unwrap();
                        serve(StreamOwned::new(connection, stream), &kept, &how);
                    }
                });
            }
        });
        Self {
            address,
            scheme,
            letters,
            manner,
        }
    }

    /// Returns its URL with this path.
    pub fn url(&self, path: &str) -> String {
        format!("{}://localhost:{}{path}", self.scheme, self.address.port())
    }

    /// Sets the way it responds from now on.
    pub fn behave(&self, manner: SinkBehavior) {
        *self.manner.lock().unwrap() = manner;
    }

    /// Returns the requests received until now, without the warning that a disk of this machine is full.
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        let letters = self.letters.lock().unwrap();
        let is_of_the_test = |letter: &&ReceivedRequest| {
            let title = letter.body["title"].as_str().unwrap_or_default();
            !title.ends_with("% full")
        };
        letters.iter().filter(is_of_the_test).cloned().collect()
    }

    /// Waits for `count` requests, and returns them.
    pub fn after(&self, count: usize) -> Vec<ReceivedRequest> {
        wait_until("so many came in", IN_TIME, || {
            self.requests().len() >= count
        });
        self.requests()
    }
}

fn serve(
    mut stream: impl Read + Write,
    letters: &Mutex<Vec<ReceivedRequest>>,
    manner: &Mutex<SinkBehavior>,
) {
    let mut read = Vec::new();
    let mut byte = [0];
    // If the client breaks off the handshake, this ends here.
    while !read.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => read.push(byte[0]),
            _ => return,
        }
    }
    let head = String::from_utf8(read).unwrap();
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse::<usize>().unwrap())
    });
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).unwrap();
    letters.lock().unwrap().push(ReceivedRequest {
        head,
        body: serde_json::from_slice(&body).unwrap_or_default(),
        bytes: body,
    });
    let manner = manner.lock().unwrap().clone();
    match manner {
        SinkBehavior::Says(status, headers) => {
            let answer =
                format!("HTTP/1.1 {status} Said\r\n{headers}content-length: 2\r\n\r\n{{}}");
            let _ = stream.write_all(answer.as_bytes());
        }
        SinkBehavior::Gives(document) => {
            let length = document.len();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
            let _ = stream.write_all((head + &document).as_bytes());
        }
        SinkBehavior::Babbles => {
            let _ = stream.write_all(b"220 mail.example ESMTP\r\n");
        }
        SinkBehavior::Silent => thread::sleep(Duration::from_mins(2)),
        SinkBehavior::Drips => {
            for byte in "HTTP/1.1 200 OK\r\nx: "
                .bytes()
                .chain(std::iter::repeat(b'a'))
            {
                if stream
                    .write_all(&[byte])
                    .and_then(|()| stream.flush())
                    .is_err()
                {
                    return;
                }
                thread::sleep(Duration::from_millis(300));
            }
        }
    }
    let _ = stream.flush();
}
