//! The two metadata documents of the protected resource and of the authorization server.

use hyper::{Response, StatusCode};
use serde_json::json;

use super::site::{IssuerOrigin, SCOPE};
use crate::http::{ResponseBody, json as json_response};

/// The metadata of `/connect/mcp`, with the server that issues its tokens (RFC 9728).
pub fn resource(site: &IssuerOrigin) -> Response<ResponseBody> {
    let document = json!({
        "resource": site.resource(),
        "authorization_servers": [site.issuer()],
        "scopes_supported": [SCOPE],
        "bearer_methods_supported": ["header"],
        "resource_name": "gatewren",
    });
    json_response(StatusCode::OK, document.to_string().into_bytes())
}

/// The metadata of the authorization server (RFC 8414).
pub fn server(site: &IssuerOrigin) -> Response<ResponseBody> {
    let document = json!({
        "issuer": site.issuer(),
        "authorization_endpoint": site.below("authorize"),
        "token_endpoint": site.below("token"),
        "registration_endpoint": site.below("register"),
        "revocation_endpoint": site.below("revoke"),
        "scopes_supported": [SCOPE],
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
        "client_id_metadata_document_supported": true,
    });
    json_response(StatusCode::OK, document.to_string().into_bytes())
}
