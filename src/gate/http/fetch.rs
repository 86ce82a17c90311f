//! Fetches a small document from another server.

use bytes::Bytes;
use hyper::Request;

use gatewren_http_client::{AllowedServers, HttpClient, HttpClientError, ServerVerification};

/// Fetches a document of at most `most` bytes. HTTPS uses the host's trusted authorities. Redirects are not followed.
pub async fn fetch(
    url: &str,
    servers: AllowedServers,
    most: usize,
) -> Result<Bytes, HttpClientError> {
    let client = HttpClient::new(url, servers, &ServerVerification::Machine)?;
    let reply = client.ask(Request::default(), Some(most)).await?;
    Ok(reply.body)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::super::subject::CertificateSubjects;
    use super::super::tls::{TlsServer, TlsSource};
    use super::*;
    use gatewren_base::sys::Scratch;

    const THIS_SERVER: AllowedServers = AllowedServers::HttpsOrThisServer;

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
        let (fetched, asked) = tokio::join!(fetch(&address, THIS_SERVER, most), server);
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
            let error = fetched.unwrap_err();
            assert!(error.contains(words), "{answer:?}: {error}");
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
            let error = fetch(address, THIS_SERVER, 9).await.unwrap_err();
            assert!(
                matches!(error, HttpClientError::Address(_)),
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
        let fetched = async |host: &str, authority: &TlsServer| {
            let url = format!("https://{host}:{port}/keys");
            let verification = ServerVerification::Authority(authority.ca().unwrap());
            let client = HttpClient::new(&url, AllowedServers::Https, &verification).unwrap();
            client.ask(Request::default(), Some(3)).await
        };
        for host in ["localhost", "127.0.0.1"] {
            assert_eq!(fetched(host, &tls).await.unwrap().body, "yes");
        }
        let refused = fetched("localhost", &other).await.unwrap_err();
        assert!(refused.certificate_error().is_some(), "{refused:?}");
    }
}
