//! The site: what the owner's pages stand on, and a visit of the owner.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use hyper::{Response, StatusCode};
use maud::html;

use super::frame::{Page, Tab, see};
use super::samples::Samples;
use super::trouble::Trouble;
use super::{parts, words};
use crate::auth::Logins;
use crate::backends::{Host, Lxc};
use crate::config::{Live, Spaces};
use crate::deeds::Hand;
use crate::guard::{Session, Visit};
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
    /// What is measured.
    pub measured: (Arc<Host>, Lxc),
    /// How the box stood in the last hour.
    pub samples: Arc<Samples>,
    /// How many pages are told of news at the moment.
    pub readers: Arc<AtomicU32>,
}

/// A page as it was made, or why not.
pub type Made = Result<Response<Body>, Trouble>;

impl Site {
    /// Measures the box, for as long as it is polled.
    pub fn keep_samples(&self) -> impl Future<Output = ()> + use<> {
        let (samples, (host, lxc)) = (self.samples.clone(), self.measured.clone());
        async move { samples.keep(host, lxc).await }
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

/// A redirection after a deed, with what is to be said of it.
pub fn done(path: &str, said: &str) -> Response<Body> {
    see(&format!("{path}?said={said}"))
}
