//! Sends one message to one channel.

use std::net::IpAddr;

use hyper::Method;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};

use super::error::Undelivered;
use super::message::Message;
use gatewren_base::config::{Channel, ChannelKind};
use gatewren_base::sys::read_secret;
use gatewren_gate::http::{Outward, OutwardError, Plain};
use gatewren_host::backends::Mail;

/// Sends a message to a channel; returns the address of the server that accepted it, if there is one. The token is
/// read each time, so that the owner can change it.
pub async fn deliver(
    mail: &Mail,
    channel: &Channel,
    message: &Message,
) -> Result<Option<IpAddr>, Undelivered> {
    if channel.kind == ChannelKind::Mail {
        let sent = mail.send(message.letter()).await;
        return sent.map(|()| None).map_err(Undelivered::Mail);
    }
    let mut headers = vec![(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    let mut plain = Plain::LocalNetwork;
    if let Some(path) = channel.token_file.clone() {
        let read = tokio::task::spawn_blocking(move || read_secret(&path)).await;
        let token = read.map_err(|_| Undelivered::Refused(OutwardError::Slow))?;
        let token = token.map_err(Undelivered::Token)?;
        let words = OutwardError::Address(
            "the token contains characters that an HTTP header cannot contain",
        );
        let mut bearer = HeaderValue::from_str(&format!("Bearer {}", token.expose()))
            .map_err(|_| Undelivered::Refused(words))?;
        bearer.set_sensitive(true);
        headers.push((AUTHORIZATION, bearer));
        plain = Plain::ThisBox;
    }
    let sent = Outward {
        address: &channel.url,
        plain,
        only_public: false,
        method: Method::POST,
        headers,
        body: message.body(channel).to_string().into(),
        // The response body is not used, and it may be endless.
        most: None,
    };
    let answered = sent.ask().await.map_err(Undelivered::Refused)?;
    Ok(Some(answered.from))
}
