//! Checks requests to the authorization server, and routes them to its endpoints.

use std::net::SocketAddr;
use std::sync::Arc;

use hyper::{Method, Request, Response, StatusCode};

use gatewren_gate::guard::{ConsentVisitor, Guard, Refusal, own_origin};
use gatewren_gate::http::{ResponseBody, Upload};
use gatewren_gate::oauth::{
    AuthorizationServer, IssuerOrigin, MAX_BODY, SignedInOwner, resource_metadata, server_metadata,
    sign_in, step_inside,
};
use gatewren_owner::chosen_theme;

/// An endpoint of the authorization server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OAuthEndpoint {
    /// The metadata of the resource at `/connect/mcp`.
    Resource,
    /// The metadata of the authorization server.
    Server,
    /// The authorization endpoint, where the owner decides.
    Authorize,
    /// The token endpoint.
    Token,
    /// The revocation endpoint.
    Revoke,
    /// The registration endpoint for clients.
    Register,
}

/// The authorization server and its guard.
pub struct GuardedOAuth {
    /// Checks requests.
    pub guard: Arc<Guard>,
    /// Answers requests.
    pub oauth: AuthorizationServer,
}

impl GuardedOAuth {
    /// Whether the settings enable it.
    pub fn is_on(&self) -> bool {
        self.oauth.is_on()
    }

    /// Answers a request to one of its endpoints.
    pub async fn answer(
        &self,
        part: OAuthEndpoint,
        request: Request<Upload>,
        peer: SocketAddr,
    ) -> Result<Response<ResponseBody>, Refusal> {
        if part == OAuthEndpoint::Authorize {
            return Box::pin(self.authorize(request, peer)).await;
        }
        if let OAuthEndpoint::Resource | OAuthEndpoint::Server = part {
            self.guard.charge_stranger(peer)?;
            let (head, _) = request.into_parts();
            let site = IssuerOrigin::new(own_origin(&head)?);
            return Ok(match part {
                OAuthEndpoint::Resource => resource_metadata(&site),
                _ => server_metadata(&site),
            });
        }
        let (head, body) = self.guard.public_body(request, peer, MAX_BODY).await?;
        let site = IssuerOrigin::new(own_origin(&head)?);
        Ok(match part {
            OAuthEndpoint::Register => {
                self.guard.charge_registration(peer)?;
                self.oauth.register(&body).await
            }
            OAuthEndpoint::Revoke => self.oauth.revoke(&head.headers, &body).await,
            _ => self.oauth.token(&site, &head.headers, &body).await,
        })
    }

    /// Shows the owner who requests access, and takes the decision. Others get the sign-in page.
    async fn authorize(
        &self,
        request: Request<Upload>,
        peer: SocketAddr,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let (head, body) = request.into_parts();
        let site = IssuerOrigin::new(own_origin(&head)?);
        let query = head.uri.query().unwrap_or_default();
        let decides = head.method == Method::POST;
        let visitor = self.guard.identify_visitor(&head, peer).await?;
        if let ConsentVisitor::Owner { .. } = visitor {
            body.presence().identify();
        }
        match visitor {
            ConsentVisitor::Owner { proof, login } => {
                let owner = SignedInOwner {
                    proof: &proof,
                    login,
                    theme: chosen_theme(&head.headers),
                };
                if !decides {
                    return Ok(self.oauth.ask(&site, owner, query).await);
                }
                let body = self.guard.small_body(body, MAX_BODY).await?;
                Ok(self.oauth.decide(&site, owner, &body, peer.ip()).await)
            }
            ConsentVisitor::Sent if !decides => Ok(step_inside(head.uri.path(), query)),
            ConsentVisitor::Anonymous if !decides => Ok(sign_in(head.uri.path(), query)),
            ConsentVisitor::Sent | ConsentVisitor::Anonymous => Err(Refusal::new(
                StatusCode::FORBIDDEN,
                "owner_required",
                "only the owner can decide this, signed in on this server's own page; start again from the client",
            )),
        }
    }
}
