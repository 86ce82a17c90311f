//! Fetches a small document from another server over HTTPS, or from this host itself.

use bytes::Bytes;
use hyper::Method;

use super::client::{OutboundError, OutboundRequest, PlainHttpScope};

/// Fetches a document of at most `most` bytes. HTTPS uses the host's trusted authorities; plain HTTP is allowed
/// only to this host. Redirects are not followed.
pub async fn fetch(address: &str, most: usize) -> Result<Bytes, OutboundError> {
    let answered = asking(address, most).ask().await?;
    Ok(answered.body)
}

/// Fetches a document that an untrusted party named: only from the public Internet.
pub async fn fetch_public(address: &str, most: usize) -> Result<Bytes, OutboundError> {
    let asking = OutboundRequest {
        only_public: true,
        ..asking(address, most)
    };
    Ok(asking.ask().await?.body)
}

fn asking(address: &str, most: usize) -> OutboundRequest<'_> {
    OutboundRequest {
        address,
        plain: PlainHttpScope::ThisBox,
        only_public: false,
        method: Method::GET,
        headers: Vec::new(),
        body: Bytes::new(),
        most: Some(most),
    }
}

#[cfg(test)]
mod tests {
    use rustls::RootCertStore;
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::super::subject::CertificateSubjects;
    use super::super::tls::{TlsServer, TlsSource};
    use super::*;
    use gatewren_base::sys::Scratch;

    /// Answers one request with these bytes, and returns the result with the request.
    async fn fetched_from(answer: &'static str, most: usize) -> (Result<Bytes, String>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/keys?a=b", listener.local_addr().unwrap());
        let server = async {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut asked = Vec::new();
            while !asked.ends_with(b"\r\n\r\n") {
                asked.push(socket.read_u8().await.unwrap());
            }
            let _ = socket.write_all(answer.as_bytes()).await;
            String::from_utf8(asked).unwrap()
        };
        let (fetched, asked) = tokio::join!(fetch(&address, most), server);
        (fetched.map_err(|error| error.to_string()), asked)
    }

    #[tokio::test]
    async fn a_small_document_is_fetched() {
        let answer = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nyes";
        let (fetched, asked) = fetched_from(answer, 3).await;
        assert_eq!(fetched.unwrap(), "yes");
        assert!(
            asked.starts_with("GET /keys?a=b HTTP/1.1\r\nhost: 127.0.0.1:"),
            "{asked}"
        );
        let until_the_end = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nyes";
        assert_eq!(fetched_from(until_the_end, 3).await.0.unwrap(), "yes");
    }

    #[tokio::test]
    async fn everything_else_is_an_error() {
        for (answer, words) in [
            (
                "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nlong",
                "too large",
            ),
            (
                "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nye",
                "incomplete",
            ),
            (
                "HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\n\r\n",
                "302",
            ),
            ("HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n", "503"),
            ("hello\r\n\r\n", "HTTP"),
            ("", "HTTP"),
        ] {
            let (fetched, _) = fetched_from(answer, 3).await;
            let said = fetched.unwrap_err();
            assert!(said.contains(words), "{answer:?}: {said}");
        }
    }

    #[tokio::test]
    async fn only_https_goes_elsewhere() {
        for address in [
            "",
            "keys.json",
            "ftp://127.0.0.1/",
            "/etc/passwd",
            "http://",
        ] {
            let error = fetch(address, 9).await.unwrap_err();
            assert!(
                matches!(error, OutboundError::Address(_)),
                "{address}: {error}"
            );
        }
    }

    #[tokio::test]
    async fn https_is_as_good_as_who_signs_for_it() {
        let made = |scratch: &Scratch| {
            let subjects = CertificateSubjects::default();
            let directory = scratch.join("tls");
            TlsServer::load(TlsSource::Own {
                directory,
                subjects,
            })
            .unwrap()
        };
        let roots = |tls: &TlsServer| {
            let pem = std::fs::read(tls.ca().unwrap()).unwrap();
            let mut roots = RootCertStore::empty();
            roots
                .add(CertificateDer::from_pem_slice(&pem).unwrap())
                .unwrap();
            roots
        };
        let (scratch, other) = (Scratch::new(), Scratch::new());
        let (tls, other) = (made(&scratch), made(&other));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let acceptor = tls.acceptors().http2_first;
        tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let Ok(mut stream) = acceptor.accept(socket).await else {
                    continue;
                };
                let mut asked = Vec::new();
                while !asked.ends_with(b"\r\n\r\n") {
                    asked.push(stream.read_u8().await.unwrap());
                }
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nyes";
                let _ = stream.write_all(answer).await;
                let _ = stream.shutdown().await;
            }
        });
        let at = |host: &str| format!("https://{host}:{port}/keys");
        let good = asking(&at("localhost"), 3)
            .ask_trusting(|| roots(&tls))
            .await;
        assert_eq!(good.unwrap().body, "yes");
        let good = asking(&at("127.0.0.1"), 3)
            .ask_trusting(|| roots(&tls))
            .await;
        assert_eq!(good.unwrap().body, "yes");
        for trusted in [roots(&other), RootCertStore::empty()] {
            let refused = asking(&at("localhost"), 3).ask_trusting(|| trusted).await;
            assert!(
                matches!(refused, Err(OutboundError::Connection(_))),
                "{refused:?}"
            );
        }
    }
}
