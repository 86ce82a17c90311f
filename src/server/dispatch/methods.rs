//! The table of methods: the name, the condition under which it is offered, and the handler.

use std::sync::Arc;

use serde_json::Value;

use super::call::{Call, CallOutcome, CallReply};
use super::engine::Engine;
use super::tasks::methods;
use super::{complete, discover, prompts, resources, skills, tool_list, tools};
use gatewren_wire::protocol::{Params, RpcError, ServerCapabilities};
use gatewren_wire::registry::Risk;

/// A method: its name, whether a server with these capabilities offers it, and its handler.
type Row = (&'static str, fn(ServerCapabilities) -> bool, Handler);

enum Handler {
    /// Answers synchronously.
    Now(fn(&Engine, &Call) -> Result<CallOutcome, RpcError>),
    /// Answers asynchronously.
    Later(fn(Arc<Engine>, Call) -> CallReply),
    /// Begins a subscription, which is no call.
    Listen,
}

use Handler::{Later, Listen, Now};

/// Every method of 2026-07-28 that is served. The methods of the stateful revisions are in their adapter.
#[rustfmt::skip]
const METHODS: &[Row] = &[
    ("server/discover",          |_| true,         Now(discover::discover)),
    ("tools/list",               |o| o.tools,      Now(tool_list::list)),
    ("tools/call",               |o| o.tools,      Later(tools::call)),
    ("resources/list",           |o| o.resources,  Now(resources::list)),
    ("resources/templates/list", |o| o.resources,  Now(resources::templates)),
    ("resources/read",           |o| o.resources,  Later(resources::read)),
    ("prompts/list",             |o| o.prompts,    Now(prompts::list)),
    ("prompts/get",              |o| o.prompts,    Later(prompts::get)),
    ("completion/complete",      |o| o.completions,Now(complete::complete)),
    ("tasks/get",                |o| o.tasks,      Now(methods::get)),
    ("tasks/update",             |o| o.tasks,      Now(methods::update)),
    ("tasks/cancel",             |o| o.tasks,      Now(methods::cancel)),
    ("subscriptions/listen",     listens,          Listen),
    ("skills/list",              |o| o.resources,  Now(skills::list)),
    ("skills/get",               |o| o.resources,  Now(skills::get)),
    ("resources/directory/read", |o| o.resources,  Now(skills::read_directory)),
];

/// Without anything to subscribe to, a stream would only be held open.
fn listens(offered: ServerCapabilities) -> bool {
    offered.resources || offered.lists_change || offered.tasks
}

impl Engine {
    /// Whether a method exists here; refusals before dispatch have their own HTTP status.
    pub fn serves(&self, method: &str) -> bool {
        self.row(method).is_some()
    }

    /// Whether a method is answered synchronously, so that its calls never accumulate.
    pub fn answers_at_once(&self, method: &str) -> bool {
        matches!(self.row(method), None | Some((.., Now(_))))
    }

    /// Whether a call only reads: other calls are counted separately.
    pub fn only_reads(&self, method: &str, params: &Params) -> bool {
        let name = params.get("name").and_then(Value::as_str);
        let tool = name.and_then(|name| self.catalog.tool(name));
        method != "tools/call" || tool.is_none_or(|tool| tool.risk() == Risk::Read)
    }

    /// Answers a call.
    pub fn answer(self: &Arc<Self>, call: Call) -> CallReply {
        match self.row(&call.method) {
            None | Some((.., Listen)) => {
                CallReply::ready(Err(RpcError::method_not_found(&call.method)))
            }
            Some((.., Now(handler))) => CallReply::ready(handler(self, &call)),
            Some((.., Later(handler))) => handler(self.clone(), call),
        }
    }

    fn row(&self, method: &str) -> Option<&'static Row> {
        let offered = self.catalog.capabilities();
        METHODS
            .iter()
            .find(|(name, offers, _)| *name == method && offers(offered))
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::watch;

    use super::super::tasks::table::TaskLimits;
    use super::*;
    use gatewren_wire::protocol::Implementation;
    use gatewren_wire::registry::Catalog;

    #[test]
    fn l8_where_nothing_can_be_heard_there_is_nothing_to_listen_to() {
        let engine = |announces: bool| {
            let mut catalog = Catalog::new(Implementation {
                name: "x".into(),
                title: None,
                version: "1".into(),
                profile: None,
            });
            if announces {
                drop(catalog.announce_list_changes());
            }
            let stop = watch::channel(false).1;
            Engine::new(catalog, None, &[0; 32], stop, TaskLimits::TWO)
        };
        assert!(!engine(false).serves("subscriptions/listen"));
        assert!(engine(true).serves("subscriptions/listen"));
    }
}
