//! Between the guard and the authorization server: who comes to which part of it, and with what.

use std::net::SocketAddr;
use std::sync::Arc;

use hyper::{Method, Request, Response, StatusCode};

use crate::guard::{Guard, Refusal, Visitor, own_origin};
use crate::http::{Body, Upload};
use crate::oauth::{
    MAX_BODY, OAuth, SignedInOwner, Site, resource_metadata, server_metadata, sign_in, step_inside,
};

/// A part of the authorization server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// What is at `/connect/mcp`.
    Resource,
    /// What is where.
    Server,
    /// Where the owner is asked.
    Authorize,
    /// Where tokens are given.
    Token,
    /// Where they are taken back.
    Revoke,
    /// Where programs register.
    Register,
}

/// The authorization server and who guards it.
pub struct Connect {
    /// Who comes in.
    pub guard: Arc<Guard>,
    /// What answers.
    pub oauth: OAuth,
}

impl Connect {
    /// Whether it answers, by the settings.
    pub fn is_on(&self) -> bool {
        self.oauth.is_on()
    }

    /// Answers a request to one of its parts.
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

    /// The owner sees who asks, and decides; anybody else is shown where the owner signs in.
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
                "only the owner decides this, signed in on this server's own page; begin again at the program",
            )),
        }
    }
}
