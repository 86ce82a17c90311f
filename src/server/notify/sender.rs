//! Sends one message to one channel.

use std::net::IpAddr;

use hyper::Method;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};

use super::error::DeliveryError;
use super::message::OwnerMessage;
use gatewren_base::config::{Channel, ChannelKind};
use gatewren_base::sys::read_secret;
use gatewren_gate::http::{OutboundError, OutboundRequest, PlainHttpScope};
use gatewren_host::backends::Mail;

/// Sends a message to a channel; returns the address of the server that accepted it, if there is one. The token is
/// read each time, so that the owner can change it.
pub async fn deliver(
    mail: &Mail,
    channel: &Channel,
    message: &OwnerMessage,
) -> Result<Option<IpAddr>, DeliveryError> {
    if channel.kind == ChannelKind::Mail {
        let sent = mail.send(message.letter()).await;
        return sent.map(|()| None).map_err(DeliveryError::Mail);
    }
    let mut headers = vec![(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    let mut plain = PlainHttpScope::LocalNetwork;
    if let Some(path) = channel.token_file.clone() {
        let read = tokio::task::spawn_blocking(move || read_secret(&path)).await;
        let token = read.map_err(|_| DeliveryError::Refused(OutboundError::Slow))?;
        let token = token.map_err(DeliveryError::Token)?;
        let words = OutboundError::Address(
            "the token contains characters that an HTTP header cannot contain",
        );
        let mut bearer = HeaderValue::from_str(&format!("Bearer {}", token.expose()))
            .map_err(|_| DeliveryError::Refused(words))?;
        bearer.set_sensitive(true);
        headers.push((AUTHORIZATION, bearer));
        plain = PlainHttpScope::ThisBox;
    }
    let sent = OutboundRequest {
        address: &channel.url,
        plain,
        only_public: false,
        method: Method::POST,
        headers,
        body: message.body(channel).to_string().into(),
        // The response body is not used, and it may be endless.
        most: None,
    };
    let answered = sent.ask().await.map_err(DeliveryError::Refused)?;
    Ok(Some(answered.from))
}
