//! Sends one message to one channel.

use std::net::IpAddr;

use hyper::header::AUTHORIZATION;
use hyper::{Method, Request};

use super::error::DeliveryError;
use super::message::OwnerMessage;
use gatewren_base::config::{Channel, ChannelKind};
use gatewren_base::sys::read_secret;
use gatewren_gate::http::{
    AllowedServers, HttpClient, HttpClientError, ServerVerification, bearer,
};
use gatewren_host::backends::Mail;

/// Sends a message to a channel; returns the address of the server that accepted it, if there is one. The token is
/// read each time, so that the owner can change it.
pub async fn deliver(
    mail: &Mail,
    channel: &Channel,
    message: &OwnerMessage,
) -> Result<Option<IpAddr>, DeliveryError> {
    if channel.kind == ChannelKind::Mail {
        let sent = mail.send(message.to_mail()).await;
        return sent.map(|()| None).map_err(DeliveryError::Mail);
    }
    let mut request = Request::new(message.body(channel).to_string().into());
    *request.method_mut() = Method::POST;
    let mut servers = AllowedServers::HttpsOrLocalNetwork;
    if let Some(path) = channel.token_file.clone() {
        let read = tokio::task::spawn_blocking(move || read_secret(&path)).await;
        let token = read.map_err(|_| DeliveryError::Refused(HttpClientError::Slow))?;
        let token = token.map_err(DeliveryError::Token)?;
        let words = HttpClientError::Address(
            "the token contains characters that an HTTP header cannot contain",
        );
        let bearer = bearer(&token).ok_or(DeliveryError::Refused(words))?;
        request.headers_mut().insert(AUTHORIZATION, bearer);
        servers = AllowedServers::HttpsOrThisServer;
    }
    let client = HttpClient::new(&channel.url, servers, &ServerVerification::Machine);
    let client = client.map_err(DeliveryError::Refused)?;
    // The response body is not used, and it may be endless.
    let reply = client.ask(request, None).await;
    Ok(Some(reply.map_err(DeliveryError::Refused)?.from))
}
