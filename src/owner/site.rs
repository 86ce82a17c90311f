//! The site: which page answers at a path, and what it stands on.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use hyper::{Method, Response, StatusCode};
use maud::html;

use super::frame::{Page, Tab, see};
use super::samples::Samples;
use super::trouble::Trouble;
use super::{
    agent, agents, asset, audit, boxed, change, connect, decide, events, inbox, logins, parts,
    sign_in, words,
};
use crate::auth::Logins;
use crate::config::{Live, Spaces};
use crate::deeds::Hand;
use crate::guard::{Refusal, Session, Visit};
use crate::http::Body;
use crate::state::State;
use crate::vault::{ChangeStatus, OWNER, OfferedTool, Vault};

/// Everything that the owner's pages show and do.
pub struct Site {
    /// What is remembered: the inbox, the agents, the audit.
    pub vault: Vault,
    /// The box as a document.
    pub state: State,
    /// The settings in force.
    pub live: Live,
    /// Who is signed in.
    pub logins: Arc<Logins>,
    /// How the box stood in the last hour.
    pub samples: Arc<Samples>,
    /// How many pages are told of news at the moment.
    pub readers: Arc<AtomicU32>,
}

/// A page as it was made, or why not.
pub type Made = Result<Response<Body>, Trouble>;

impl Site {
    /// Answers a visit.
    pub async fn answer(&self, visit: Visit) -> Response<Body> {
        let made = match asset::asset(&visit) {
            Some(asset) => return asset,
            None => self.made(&visit).await,
        };
        made.unwrap_or_else(|trouble| match trouble {
            Trouble::SignedOut => sign_in::ask(&visit),
            trouble => self.troubled(&visit, &trouble),
        })
    }

    /// A refusal of the chain, as a page says it.
    pub fn refuse(&self, refusal: &Refusal) -> Response<Body> {
        let mut page = plain_page(refusal.status, &refusal.message);
        let given = refusal.to_response();
        for (name, value) in given.headers() {
            if name != hyper::header::CONTENT_TYPE && name != hyper::header::CONTENT_LENGTH {
                page.headers_mut().insert(name.clone(), value.clone());
            }
        }
        page
    }

    async fn made(&self, visit: &Visit) -> Made {
        let path = visit.path().strip_prefix("/owner").unwrap_or_default();
        let path: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let posts = *visit.method() == Method::POST;
        // What anybody may see and send.
        match (posts, path.as_slice()) {
            (false, ["sign-in"]) => return Ok(sign_in::page(self, visit)?),
            (true, ["sign-in"]) => return sign_in::sign_in(self, visit).await,
            (false, ["set-up"]) => return sign_in::set_up_page(self),
            (true, ["set-up"]) => return sign_in::set_up(self, visit).await,
            (false, ["connect", "authority", form]) => {
                return connect::authority(self, visit, form);
            }
            _ => {}
        }
        let session = visit.session().ok_or(Trouble::SignedOut)?;
        let asked = Asked {
            stamp: self.stamp(),
            site: self,
            visit,
            session,
        };
        match (posts, path.as_slice()) {
            (false, []) => inbox::page(&asked),
            (false, ["events"]) => events::events(&asked),
            (true, ["changes"]) => decide::all(&asked).await,
            (false, ["changes", id]) => change::page(&asked, id),
            (true, ["changes", id]) => decide::one(&asked, id).await,
            (true, ["grants", id]) => decide::end_grant(&asked, id).await,
            (false, ["box"]) => boxed::page(&asked),
            (false, ["agents"]) => agents::page(&asked),
            (true, ["agents"]) => agents::add(&asked).await,
            (false, ["agents", id]) => agent::page(&asked, id),
            (true, ["agents", id]) => agent::change(&asked, id).await,
            (false, ["audit"]) => audit::page(&asked).await,
            (false, ["audit", "export"]) => audit::export(&asked),
            (false, ["audit", call]) => audit::call(&asked, call),
            (false, ["connect"]) => connect::page(&asked),
            (false, ["logins"]) => logins::page(&asked),
            (true, ["logins"]) => logins::end(&asked).await,
            (true, ["sign-out"]) => sign_in::sign_out(&asked).await,
            _ => Err(Trouble::Absent),
        }
    }

    fn troubled(&self, visit: &Visit, trouble: &Trouble) -> Response<Body> {
        let content = html! {
            h1 { (words::TROUBLE) }
            (parts::notice(trouble.words(), true))
            p { a href="/owner" { (words::TO_INBOX) } }
        };
        let page = Page {
            title: words::TROUBLE,
            tab: visit.session().map(|_| Tab::Inbox),
            waiting: self.waiting().unwrap_or(0),
            live: None,
            content,
        };
        page.response(trouble.status())
    }

    /// How many changes wait for the owner.
    pub fn waiting(&self) -> Result<usize, Trouble> {
        let open = self.vault.changes().list(true)?;
        let waits = open
            .iter()
            .filter(|change| change.status == ChangeStatus::Pending);
        Ok(waits.count())
    }

    /// Another one when something has moved that a page may show.
    pub fn stamp(&self) -> String {
        let inbox = *self.vault.changes().bell().borrow();
        let agents = *self.vault.agents().changes().borrow();
        let state = *self.state.bell().borrow();
        let samples = *self.samples.bell().borrow();
        format!("{inbox}.{agents}.{state}.{samples}")
    }

    /// The spaces of the settings.
    pub fn spaces(&self) -> Spaces {
        self.live.read(|settings| settings.spaces.clone())
    }

    /// The tools that there are.
    pub fn tools(&self) -> Result<Vec<OfferedTool>, Trouble> {
        Ok(self.vault.offer().tools()?)
    }

    /// A file of the state directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.live.read(|settings| settings.state_dir.join(name))
    }
}

/// A visit of the owner.
pub struct Asked<'a> {
    /// What had moved before anything was read for the page.
    pub stamp: String,
    /// What it stands on.
    pub site: &'a Site,
    /// What was sent.
    pub visit: &'a Visit,
    /// Who is signed in.
    pub session: &'a Session,
}

impl Asked<'_> {
    /// A page for the owner.
    pub fn page(&self, tab: Tab, title: &str, live: bool, content: maud::Markup) -> Made {
        let page = Page {
            title,
            tab: Some(tab),
            waiting: self.site.waiting()?,
            live: live.then_some(self.stamp.as_str()),
            content,
        };
        Ok(page.response(StatusCode::OK))
    }

    /// Whose hand does what is asked for.
    pub fn hand(&self) -> Hand {
        Hand {
            by: OWNER.to_owned(),
            from: self.visit.from().to_string(),
        }
    }

    /// What is to be said of what was done just before, by its name in the query.
    pub fn said(&self) -> maud::Markup {
        let said = self.visit.query("said").unwrap_or_default();
        let known = words::SAID.iter().find(|(name, _)| *name == said);
        html! { @if let Some((_, words)) = known { (parts::notice(words, false)) } }
    }
}

/// A page for somebody who may not be signed in.
pub fn plain_page(status: StatusCode, words: &str) -> Response<Body> {
    let page = Page {
        title: words::TROUBLE,
        tab: None,
        waiting: 0,
        live: None,
        content: html! {
            h1 { (words::TROUBLE) }
            (parts::notice(words, true))
            p { a href="/owner" { (words::AGAIN) } }
        },
    };
    page.response(status)
}

/// A redirection after a deed, with what is to be said of it.
pub fn done(path: &str, said: &str) -> Response<Body> {
    see(&format!("{path}?said={said}"))
}
