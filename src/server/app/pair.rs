//! `POST /pair`: exchanges a one-time code for an agent's token.

use std::net::SocketAddr;
use std::sync::Arc;

use hyper::{Request, Response, StatusCode};
use serde::Deserialize;
use serde_json::json;

use gatewren_base::sys::Secret;
use gatewren_gate::guard::{Guard, Refusal, own_origin};
use gatewren_gate::http::{ResponseBody, TlsServer, Upload, json as json_response};
use gatewren_gate::owner_actions::{PairingRefusal, redeem_pairing};
use gatewren_store::vault::Vault;

/// The maximum size of a body, in bytes.
const MAX_BYTES: usize = 1024;

/// The body of a request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    code: Secret,
}

/// Exchanges codes for tokens.
pub struct PairingEndpoint {
    /// Limits requests.
    pub guard: Arc<Guard>,
    /// The store of the codes.
    pub vault: Vault,
    /// The certificate that clients pin; `None` without TLS.
    pub tls: Option<Arc<TlsServer>>,
}

impl PairingEndpoint {
    /// Returns the token of the agent that a code is for. Unknown, used and expired codes are rejected with the
    /// same error; each try is charged to its address.
    pub async fn answer(
        &self,
        request: Request<Upload>,
        peer: SocketAddr,
    ) -> Result<Response<ResponseBody>, Refusal> {
        self.guard.charge_pairing(peer)?;
        let (head, body) = self.guard.public_body(request, peer, MAX_BYTES).await?;
        let asked: Asked = serde_json::from_slice(&body).map_err(|_| {
            let words = "send {\"code\": \"...\"} with the code that `gatewren pair` printed";
            Refusal::new(StatusCode::BAD_REQUEST, "bad_pairing", words)
        })?;
        let origin = own_origin(&head)?;
        let redeemed =
            redeem_pairing(&self.vault, asked.code.expose(), peer.ip().to_canonical()).await;
        let redeemed = redeemed.map_err(|cause| {
            tracing::error!(cause, "a pairing failed");
            let words = "the pairing failed; see the server's log for the cause";
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", words)
        })?;
        let (agent, token) = redeemed.map_err(|refusal| match refusal {
            PairingRefusal::BadCode => {
                let words = "invalid code: it was already used, has expired after 5 minutes, or was mistyped; create \
                             another one with `gatewren pair`";
                Refusal::new(StatusCode::FORBIDDEN, "bad_code", words)
            }
            PairingRefusal::NameTaken(words) => {
                Refusal::new(StatusCode::CONFLICT, "name_taken", words)
            }
        })?;
        let pin = self.tls.as_ref().and_then(|tls| tls.pin().ok());
        let answer = json!({
            "token": token.expose(), "agent": agent.name, "url": format!("{origin}/mcp"),
            "pin": pin.map(|pin| pin.to_string()),
        });
        let mut response = json_response(StatusCode::OK, answer.to_string().into_bytes());
        let headers = response.headers_mut();
        let private = hyper::header::HeaderValue::from_static("no-store");
        headers.insert(hyper::header::CACHE_CONTROL, private);
        Ok(response)
    }
}
