//! Sends a message to the owner's devices over their push services (Web Push, RFC 8030).

use std::net::IpAddr;

use hyper::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Method, Request};
use ring::error::Unspecified;

use super::error::DeliveryError;
use super::message::{MessageSource, OwnerMessage, Priority};
use super::push_encryption::{DeviceKeys, encrypt};
use super::vapid::VapidKey;
use gatewren_base::config::{Channel, ChannelKind, Occasion, Settings};
use gatewren_base::sys::{Zeroizing, interface_addresses, now_ms};
use gatewren_gate::http::{AllowedServers, HttpClient, HttpClientError, ServerVerification};
use gatewren_gate::owner_actions::reached_at;
use gatewren_store::vault::{NewPushDevice, PushDevice, Vault};

/// How long the push service keeps a message for a device that is off, in seconds.
const TTL: &str = "86400";

/// The longest URL of a subscription. Those of the known services have less than 600 bytes.
const MAX_ENDPOINT_BYTES: usize = 1024;

/// The longest name of a device.
const MAX_NAME_BYTES: usize = 80;

/// Sends a message to the device in `target` (`CHANNEL/DEVICE`), or to all devices if it names none. It is sent if one
/// of them gets it. A device whose subscription has ended is removed.
pub(super) async fn push(
    vault: &Vault,
    settings: &Settings,
    target: &str,
    message: &OwnerMessage,
) -> Result<Option<IpAddr>, DeliveryError> {
    let mut devices = vault.push_devices().list().map_err(DeliveryError::Vault)?;
    if let Some((_, id)) = target.split_once('/') {
        devices.retain(|device| device.id == id);
    }
    let key = load_key(vault).await?;
    let mut result = Err(DeliveryError::NoDevice);
    for device in devices {
        let sent = push_to(settings, &key, &device, message).await;
        match &sent {
            Ok(_) => vault.push_devices().note_sent(&device.id).await,
            Err(DeliveryError::Gone) => {
                tracing::info!(device = device.id, "a device has ended its subscription");
                vault.push_devices().remove(&device.id).await.map(drop)
            }
            Err(_) => Ok(()),
        }
        .unwrap_or_else(|cause| tracing::warn!(%cause, "cannot record a message to a device"));
        if result.is_err() {
            result = sent.map(Some);
        }
    }
    result
}

/// Returns the public key of this server, which a browser needs for a subscription.
pub async fn public_key(vault: &Vault) -> Result<String, DeliveryError> {
    Ok(load_key(vault).await?.public_key())
}

/// Returns why a subscription cannot be accepted, if so. Whether the host is on the public Internet is checked with
/// each connection.
pub fn check_subscription(settings: &Settings, new: &NewPushDevice) -> Result<(), DeliveryError> {
    let is_short = new.endpoint.len() <= MAX_ENDPOINT_BYTES && new.name.len() <= MAX_NAME_BYTES;
    let plain = |b: u8| b.is_ascii_graphic() && b != b'#' && b != b'"' && b != b'\\';
    if !is_short || !new.endpoint.bytes().all(plain) || !keys_of(new).are_valid() {
        return Err(DeliveryError::Device);
    }
    client_for(settings, &new.endpoint).map(drop)
}

async fn push_to(
    settings: &Settings,
    key: &VapidKey,
    device: &PushDevice,
    message: &OwnerMessage,
) -> Result<IpAddr, DeliveryError> {
    let subscription = &device.subscription;
    let text = message.body(&Channel::push()).to_string();
    let invalid = |_: Unspecified| DeliveryError::Device;
    let body = encrypt(&keys_of(subscription), text.as_bytes()).map_err(invalid)?;
    let (service, subject) = (origin(&subscription.endpoint), reached_at(settings));
    let subject = format!("https://{subject}/owner");
    let token = key.authorization(service, &subject, now_ms());
    let mut token =
        HeaderValue::from_str(&token.map_err(invalid)?).map_err(|_| DeliveryError::Device)?;
    token.set_sensitive(true);
    let mut request = Request::new(body.into());
    *request.method_mut() = Method::POST;
    let headers = request.headers_mut();
    headers.insert(AUTHORIZATION, token);
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("aes128gcm"));
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/octet-stream"),
    );
    headers.insert(
        HeaderName::from_static("ttl"),
        HeaderValue::from_static(TTL),
    );
    headers.insert(HeaderName::from_static("urgency"), urgency(message));
    let reply = client_for(settings, &subscription.endpoint)?
        .ask(request, None)
        .await;
    match reply {
        Ok(reply) => Ok(reply.from),
        Err(HttpClientError::Status(status)) if [404, 410].contains(&status.as_u16()) => {
            Err(DeliveryError::Gone)
        }
        Err(cause) => Err(DeliveryError::Refused(cause)),
    }
}

/// Returns the client for a subscription. A web page has chosen the URL, so it must lead to the public Internet,
/// unless the owner has set a push service of their own.
fn client_for(settings: &Settings, endpoint: &str) -> Result<HttpClient, DeliveryError> {
    let mut channels = settings.notify.values();
    let own = channels.find(|channel| channel.kind == ChannelKind::Push && !channel.url.is_empty());
    let servers = match own {
        Some(own) if origin(&own.url) == origin(endpoint) => AllowedServers::Https,
        _ => AllowedServers::PublicInternet(interface_addresses),
    };
    let client = HttpClient::new(endpoint, servers, &ServerVerification::Machine);
    client.map_err(DeliveryError::Refused)
}

/// Returns a URL up to its path.
fn origin(url: &str) -> &str {
    let begin = url.find("://").map_or(0, |at| at + 3);
    let end = url.get(begin..).and_then(|rest| rest.find(['/', '?']));
    end.and_then(|end| url.get(..begin + end)).unwrap_or(url)
}

/// A phone that saves power gets only messages of high urgency at once (RFC 8030, 5.3).
fn urgency(message: &OwnerMessage) -> HeaderValue {
    let asks = message.source == MessageSource::Us(Occasion::Inbox.as_str());
    HeaderValue::from_static(match message.priority {
        _ if asks => "high",
        Priority::High => "high",
        Priority::Normal => "normal",
        Priority::Low => "low",
    })
}

fn keys_of(subscription: &NewPushDevice) -> DeviceKeys {
    DeviceKeys {
        p256dh: subscription.p256dh.clone(),
        auth: subscription.auth.clone(),
    }
}

/// Returns the key of this server. It is made at its first use.
async fn load_key(vault: &Vault) -> Result<VapidKey, DeliveryError> {
    let table = vault.push_devices();
    let mut stored = table.vapid_key().map_err(DeliveryError::Vault)?;
    if stored.is_none() {
        let fresh = VapidKey::generate().map_err(|_| DeliveryError::Key)?;
        let kept = table.keep_vapid_key(Zeroizing::new(fresh)).await;
        stored = Some(kept.map_err(DeliveryError::Vault)?);
    }
    let stored = stored.ok_or(DeliveryError::Key)?;
    VapidKey::from_pkcs8(&stored).map_err(|_| DeliveryError::Key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subscription(endpoint: &str) -> NewPushDevice {
        NewPushDevice {
            name: "Phone".to_owned(),
            endpoint: endpoint.to_owned(),
            p256dh: vec![4; 65],
            auth: vec![1; 16],
        }
    }

    #[test]
    fn a_subscription_is_at_a_push_service_on_the_internet() {
        let mut settings = Settings::default();
        let check = |settings: &Settings, endpoint: &str| {
            check_subscription(settings, &subscription(endpoint))
        };
        for good in [
            "https://fcm.googleapis.com/fcm/send/a:b-c_d",
            "https://web.push.apple.com/x",
        ] {
            assert!(check(&settings, good).is_ok(), "{good}");
        }
        let long = format!("https://push.example/{}", "x".repeat(MAX_ENDPOINT_BYTES));
        for bad in [
            "http://push.example/x",
            "https://push.example:8443/x",
            "https://me:word@push.example/x",
            "https://push.example/a b",
            "ftp://push.example/x",
            "",
            &long,
        ] {
            assert!(check(&settings, bad).is_err(), "{bad}");
        }
        let own = Channel {
            url: "https://push.lan:8443".to_owned(),
            ..Channel::push()
        };
        settings.notify.insert("mine".to_owned(), own);
        assert!(check(&settings, "https://push.lan:8443/x").is_ok());
        assert!(check(&settings, "https://push.lan:84430/x").is_err());
        assert!(check(&settings, "https://push.lan:8443.evil.example/x").is_err());
    }

    #[test]
    fn the_origin_of_a_url_is_all_before_its_path() {
        for (url, expected) in [
            ("https://push.example/x/y?z", "https://push.example"),
            ("https://push.example:8443?z", "https://push.example:8443"),
            ("https://push.example", "https://push.example"),
        ] {
            assert_eq!(origin(url), expected);
        }
    }
}
