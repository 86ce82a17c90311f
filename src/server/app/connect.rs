//! Checks requests to the authorization server, and routes them to its endpoints.

use std::net::SocketAddr;
use std::sync::Arc;

use hyper::{Method, Request, Response, StatusCode};

use gatewren_gate::guard::{Guard, Refusal, Visitor, own_origin};
use gatewren_gate::http::{Body, Upload};
use gatewren_gate::oauth::{
    MAX_BODY, OAuth, SignedInOwner, Site, resource_metadata, server_metadata, sign_in, step_inside,
};

/// An endpoint of the authorization server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
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
pub struct Connect {
    /// Checks requests.
    pub guard: Arc<Guard>,
    /// Answers requests.
    pub oauth: OAuth,
}

impl Connect {
    /// Whether the settings enable it.
    pub fn is_on(&self) -> bool {
        self.oauth.is_on()
    }

    /// Answers a request to one of its endpoints.
    pub async fn answer(
        &self,
        part: Part,
        request: Request<Upload>,
        peer: SocketAddr,
    ) -> Result<Response<Body>, Refusal> {
        if part == Part::Authorize {
            return Box::pin(self.authorize(request, peer)).await;
        }
        if let Part::Resource | Part::Server = part {
            self.guard.charge_stranger(peer)?;
            let (head, _) = request.into_parts();
            let site = Site::new(own_origin(&head)?);
            return Ok(match part {
                Part::Resource => resource_metadata(&site),
                _ => server_metadata(&site),
            });
        }
        let (head, body) = self.guard.stranger_body(request, peer, MAX_BODY).await?;
        let site = Site::new(own_origin(&head)?);
        Ok(match part {
            Part::Register => {
                self.guard.charge_registration(peer)?;
                self.oauth.register(&body).await
            }
            Part::Revoke => self.oauth.revoke(&head.headers, &body).await,
            _ => self.oauth.token(&site, &head.headers, &body).await,
        })
    }

    /// Shows the owner who requests access, and takes the decision. Others get the sign-in page.
    async fn authorize(
        &self,
        request: Request<Upload>,
        peer: SocketAddr,
    ) -> Result<Response<Body>, Refusal> {
        let (head, body) = request.into_parts();
        let site = Site::new(own_origin(&head)?);
        let query = head.uri.query().unwrap_or_default();
        let decides = head.method == Method::POST;
        let visitor = self.guard.looks_in(&head, peer).await?;
        if let Visitor::Owner { .. } = visitor {
            body.presence().identify();
        }
        match visitor {
            Visitor::Owner { proof, login } => {
                let owner = SignedInOwner {
                    proof: &proof,
                    login,
                };
                if !decides {
                    return Ok(self.oauth.ask((&site, owner), query).await);
                }
                let body = self.guard.small_body(body, MAX_BODY).await?;
                Ok(self.oauth.decide((&site, owner), &body, peer.ip()).await)
            }
            Visitor::Sent if !decides => Ok(step_inside(head.uri.path(), query)),
            Visitor::Stranger if !decides => Ok(sign_in(head.uri.path(), query)),
            Visitor::Sent | Visitor::Stranger => Err(Refusal::new(
                StatusCode::FORBIDDEN,
                "owner_required",
                "only the owner can decide this, signed in on this server's own page; start again from the client",
            )),
        }
    }
}
