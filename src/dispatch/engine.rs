//! The table of methods, and the engine that every transport calls.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::watch;

use super::{
    call::{Call, Outcome, Reply},
    complete, discover, listen, prompts, resources,
    results::{self, Caching},
    sealed::Sealer,
    tools,
};
use crate::protocol::{Level, RpcError, ServerCapabilities};
use crate::registry::Catalog;
use crate::vault::Vault;

/// Answers calls from one catalog; shared by every connection.
pub struct Engine {
    /// What can be asked for.
    pub catalog: Catalog,
    /// Where calls are recorded; fixtures have none.
    pub(super) vault: Option<Vault>,
    pub(super) sealer: Sealer,
    /// Turns true when the server stops.
    pub(super) stop: watch::Receiver<bool>,
}

/// A method: its name, the feature that offers it, and what answers it.
type Row = (&'static str, fn(&ServerCapabilities) -> bool, Handler);

enum Handler {
    /// At once.
    Now(fn(&Engine, &Call) -> Result<Outcome, RpcError>),
    /// In its own time.
    Later(fn(Arc<Engine>, Call) -> Reply),
}

use Handler::{Later, Now};

/// Every method of 2026-07-28 that is served. The stateful revisions' own methods stand in their adapter.
#[rustfmt::skip]
const METHODS: &[Row] = &[
    ("server/discover",          |_| true,         Now(discover::discover)),
    ("tools/list",               |o| o.tools,      Now(tools::list)),
    ("tools/call",               |o| o.tools,      Later(tools::call)),
    ("resources/list",           |o| o.resources,  Now(resources::list)),
    ("resources/templates/list", |o| o.resources,  Now(resources::templates)),
    ("resources/read",           |o| o.resources,  Later(resources::read)),
    ("prompts/list",             |o| o.prompts,    Now(prompts::list)),
    ("prompts/get",              |o| o.prompts,    Later(prompts::get)),
    ("completion/complete",      |o| o.completions,Now(complete::complete)),
    ("subscriptions/listen",     listens,          Later(listening)),
];

/// A stream on which nothing can ever be heard would only be held open.
fn listens(offered: &ServerCapabilities) -> bool {
    offered.resources || offered.lists_change
}

fn listening(engine: Arc<Engine>, call: Call) -> Reply {
    listen::listen(&engine, &call).unwrap_or_else(|error| Reply::ready(Err(error)))
}

impl Engine {
    /// An engine over a catalog.
    pub fn new(
        catalog: Catalog,
        vault: Option<Vault>,
        seal_key: &[u8; 32],
        stop: watch::Receiver<bool>,
    ) -> Self {
        Self {
            catalog,
            vault,
            sealer: Sealer::new(seal_key),
            stop,
        }
    }

    /// Whether a method exists here; pre-dispatch refusals have an HTTP status of their own.
    pub fn serves(&self, method: &str) -> bool {
        self.row(method).is_some()
    }

    /// Answers a call.
    pub fn answer(self: &Arc<Self>, call: Call) -> Reply {
        match self.row(&call.method) {
            None => Reply::ready(Err(RpcError::method_not_found(&call.method))),
            Some((.., Now(handler))) => Reply::ready(handler(self, &call)),
            Some((.., Later(handler))) => handler(self.clone(), call),
        }
    }

    /// The newest revision of the resources.
    pub fn revision(&self) -> u64 {
        self.catalog
            .resources()
            .map_or(0, |source| *source.bell().borrow())
    }

    /// Hears when the server stops.
    pub fn stopping(&self) -> watch::Receiver<bool> {
        self.stop.clone()
    }

    pub(super) fn complete(&self, result: Value, caching: Caching) -> Outcome {
        results::complete(result, caching, &self.catalog.server)
    }

    fn row(&self, method: &str) -> Option<&'static Row> {
        let offered = self.catalog.capabilities();
        METHODS
            .iter()
            .find(|(name, offers, _)| *name == method && offers(&offered))
    }
}

impl Engine {
    /// `logging/setLevel` of the stateful revisions: the severity, when logging is offered.
    pub fn log_level(&self, name: Option<&str>) -> Result<Level, RpcError> {
        if !self.catalog.capabilities().logging {
            return Err(RpcError::method_not_found("logging/setLevel"));
        }
        name.and_then(Level::parse).ok_or_else(|| {
            RpcError::invalid_params(
                "level is one of debug, info, notice, warning, error, critical, alert, emergency",
            )
            .with_data(json!({ "level": name }))
        })
    }
}
