//! Dynamic client registration (RFC 7591): the older method, for programs that support no other.

use hyper::{Response, StatusCode};
use serde_json::{Value, json};

use super::client::ClientMetadata;
use super::error::{OAuthError, uncached_json};
use super::site::SCOPE;
use crate::http::ResponseBody;
use gatewren_store::vault::Vault;

/// Registers a program and returns its id. It gets no secret, because a program on a user's computer could not keep
/// it. A registration gives no access; only the owner does.
pub async fn register(vault: &Vault, body: &[u8]) -> Result<Response<ResponseBody>, OAuthError> {
    let wrong = |words: &str| OAuthError::new("invalid_client_metadata", words);
    let metadata: Value =
        serde_json::from_slice(body).map_err(|_| wrong("the body is not JSON"))?;
    let metadata =
        ClientMetadata::read(&metadata).map_err(|(code, words)| OAuthError::new(code, words))?;
    let ClientMetadata {
        name,
        redirect_uris,
    } = metadata;
    let clients = vault.oauth_clients();
    let id = clients
        .register(name.clone(), redirect_uris.clone())
        .await?;
    tracing::info!(client = id, "a program has registered for OAuth");
    let mut answer = json!({
        "client_id": id,
        "redirect_uris": redirect_uris,
        "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "scope": SCOPE,
    });
    if let (false, Some(answer)) = (name.is_empty(), answer.as_object_mut()) {
        answer.insert("client_name".to_owned(), json!(name));
    }
    Ok(uncached_json(StatusCode::CREATED, &answer))
}
