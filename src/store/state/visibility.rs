//! Decides which part of the document an agent sees: by the place only, not by the value.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::operation::PatchOperation;
use super::pointer::Pointer;
use gatewren_base::config::Reach;

/// The part of the document that an agent can see.
///
/// An agent with access to the whole host sees the whole document. Others see the containers within reach and, if
/// they reach the host, the host's data. Any other place, including one that a program on the host has created,
/// does not exist for them.
#[derive(Debug, Clone)]
pub struct Visibility {
    agent: Arc<str>,
    reach: Reach,
}

/// How much of the value at a place is visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VisibleExtent {
    /// All of it.
    Whole,
    /// Some of the values below it.
    Part,
    /// Nothing: the place does not exist for the agent.
    Nothing,
}

impl Visibility {
    /// Returns the view of this agent with this reach.
    pub fn of(agent: &str, reach: &Reach) -> Self {
        Self {
            agent: agent.into(),
            reach: reach.clone(),
        }
    }

    /// Returns the view of the whole document.
    pub fn whole() -> Self {
        Self::of("", &Reach::everything())
    }

    /// Returns whether it covers the whole document.
    pub fn is_whole(&self) -> bool {
        self.reach.is_everything()
    }

    /// Its reach on the host.
    pub fn reach(&self) -> &Reach {
        &self.reach
    }

    /// Returns how much of the value at a place is visible.
    pub fn extent(&self, place: &Pointer) -> VisibleExtent {
        if self.is_whole() {
            return VisibleExtent::Whole;
        }
        let tokens: Vec<&str> = place.tokens().iter().map(String::as_str).collect();
        self.extent_of(&tokens)
    }

    /// Returns the visible part of `value`, the value at `place`.
    pub fn part(&self, place: &Pointer, value: &Value) -> Option<Value> {
        let mut tokens: Vec<&str> = place.tokens().iter().map(String::as_str).collect();
        self.visible_part(&mut tokens, value)
    }

    /// Returns the visible part of an operation; one that writes above the visible part is cut down to it.
    pub fn operation(&self, operation: PatchOperation) -> Option<PatchOperation> {
        match (self.extent(operation.path()), operation) {
            (VisibleExtent::Nothing, _) | (VisibleExtent::Part, PatchOperation::Test { .. }) => {
                None
            }
            (VisibleExtent::Part, PatchOperation::Add { path, value }) => {
                let value = self.part(&path, &value)?;
                Some(PatchOperation::Add { path, value })
            }
            (VisibleExtent::Part, PatchOperation::Replace { path, value }) => {
                let value = self.part(&path, &value)?;
                Some(PatchOperation::Replace { path, value })
            }
            (_, operation) => Some(operation),
        }
    }

    /// Returns the author of a revision as this agent sees it. Other agents are shown only as `agent`. Programs on
    /// the host are shown only as `local`, unless the agent reaches the host.
    pub fn author(&self, actor: String) -> String {
        let is_own = || actor.strip_prefix("agent:") == Some(&self.agent);
        match actor.as_str() {
            _ if self.is_whole() => actor,
            "observer" | "owner" => actor,
            text if text.starts_with("agent:") && is_own() => actor,
            text if text.starts_with("agent:") => "agent".to_owned(),
            _ if self.reach.host() => actor,
            // Also an actor that a program has made up.
            _ => "local".to_owned(),
        }
    }

    /// Returns the cause of a revision, only for a view of everything: a revision does not record whose call it
    /// was.
    pub fn cause(&self, cause: Option<String>) -> Option<String> {
        cause.filter(|_| self.is_whole())
    }

    fn extent_of(&self, tokens: &[&str]) -> VisibleExtent {
        use VisibleExtent::{Nothing, Part, Whole};
        let if_so = |within: bool, extent: VisibleExtent| if within { extent } else { Nothing };
        if self.is_whole() {
            return Whole;
        }
        let host = self.reach.host();
        match tokens {
            []
            | ["public"]
            | ["public", "packageData" | "notifications"]
            | ["public", "notifications", "containers"] => Part,
            ["public", "packageData", name, ..] => if_so(self.reach.container(name), Whole),
            ["public", "serverInfo" | "units" | "observer"]
            | ["public", "serverInfo", "mounts"] => if_so(host, Part),
            ["public", "serverInfo", "mounts", path, ..] => {
                if_so(host && self.reach.path(path), Whole)
            }
            ["public", "serverInfo", ..] | ["public", "observer", "units", ..] => {
                if_so(host, Whole)
            }
            ["public", "notifications", "containers", name, ..] => {
                if_so(self.reach.container(name), Whole)
            }
            ["public", "notifications", "host", ..] => if_so(host, Whole),
            ["public", "units", name, ..] => if_so(host && self.reach.unit(name), Whole),
            _ => Nothing,
        }
    }

    fn visible_part<'v>(&self, place: &mut Vec<&'v str>, value: &'v Value) -> Option<Value> {
        match (self.extent_of(place), value) {
            (VisibleExtent::Whole, value) => Some(value.clone()),
            (VisibleExtent::Part, Value::Object(members)) => {
                let mut kept = Map::new();
                for (key, value) in members {
                    place.push(key);
                    if let Some(value) = self.visible_part(place, value) {
                        kept.insert(key.clone(), value);
                    }
                    place.pop();
                }
                // Not even the existence of others' notifications may be visible.
                let tells = kept.is_empty() && place.get(1) == Some(&"notifications");
                (!tells).then_some(Value::Object(kept))
            }
            // An object was expected here, because its keys decide; any other value is invisible.
            (VisibleExtent::Part | VisibleExtent::Nothing, _) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use gatewren_base::config::Space;

    fn visibility(containers: &[&str], host: bool) -> Visibility {
        let containers = containers.iter().map(|glob| glob.parse().unwrap());
        let space = Space {
            containers: containers.collect(),
            host,
        };
        Visibility::of("7", &Reach::of(&space))
    }

    fn at(text: &str) -> Pointer {
        Pointer::parse(text).unwrap()
    }

    fn document() -> Value {
        json!({"secret": 1, "public": {
            "packageData": {"web": {"status": "running"}, "db": {"status": "stopped"}},
            "serverInfo": {"hostname": "box", "mounts": {
                "/": {}, "/var/lib/lxc/web/rootfs": {}, "/var/lib/lxc/db/rootfs": {}}},
            "units": {"ssh.service": {}, "lxc@web.service": {}, "lxc@db.service": {}},
            "observer": {"containers": {"available": true}, "units": {"available": true}},
            "backup": {"of": "db"},
        }})
    }

    #[test]
    fn a_space_without_the_host_sees_its_containers_and_nothing_else() {
        let seen = visibility(&["web"], false).part(&Pointer::root(), &document());
        let web = json!({"public": {"packageData": {"web": {"status": "running"}}}});
        assert_eq!(seen, Some(web));
        let none = visibility(&[], false).part(&Pointer::root(), &document());
        assert_eq!(none, Some(json!({"public": {"packageData": {}}})));
    }

    #[test]
    fn a_space_with_the_host_sees_of_the_host_what_stands_for_no_container_elsewhere() {
        let seen = visibility(&["web"], true).part(&Pointer::root(), &document());
        let host = json!({"public": {
            "packageData": {"web": {"status": "running"}},
            "serverInfo": {"hostname": "box", "mounts": {"/": {}, "/var/lib/lxc/web/rootfs": {}}},
            "units": {"ssh.service": {}, "lxc@web.service": {}},
            "observer": {"units": {"available": true}},
        }});
        assert_eq!(seen, Some(host));
        let whole = Visibility::whole().part(&Pointer::root(), &document());
        assert_eq!(whole, Some(document()));
    }

    #[test]
    fn an_operation_shows_nothing_of_what_is_elsewhere() {
        let operation = |value: Value| serde_json::from_value::<PatchOperation>(value).unwrap();
        let visible_part = |value: Value| {
            let seen = visibility(&["web"], false).operation(operation(value));
            seen.map(|seen| serde_json::to_value(seen).unwrap())
        };
        for elsewhere in [
            json!({"op": "replace", "path": "/public/packageData/db/status", "value": 1}),
            json!({"op": "remove", "path": "/public/packageData/db"}),
            json!({"op": "add", "path": "/public/serverInfo", "value": {}}),
            json!({"op": "add", "path": "/public/units/web.service", "value": 1}),
            json!({"op": "add", "path": "/public/packageData", "value": ["db"]}),
            json!({"op": "add", "path": "/secret", "value": 1}),
        ] {
            assert_eq!(visible_part(elsewhere.clone()), None, "{elsewhere}");
        }
        let within = json!({"op": "remove", "path": "/public/packageData/web"});
        assert_eq!(visible_part(within.clone()), Some(within));
        let above = json!({"op": "replace", "path": "", "value": document()});
        let cut = json!({"op": "replace", "path": "", "value":
            {"public": {"packageData": {"web": {"status": "running"}}}}});
        assert_eq!(visible_part(above), Some(cut));
    }

    #[test]
    fn others_have_no_name() {
        let (narrow, host) = (visibility(&[], false), visibility(&[], true));
        for (actor, narrowly, with_host) in [
            ("observer", "observer", "observer"),
            ("owner", "owner", "owner"),
            ("agent:7", "agent:7", "agent:7"),
            ("agent:8", "agent", "agent"),
            ("local:backup", "local", "local:backup"),
            ("made up", "local", "made up"),
        ] {
            assert_eq!(narrow.author(actor.to_owned()), narrowly);
            assert_eq!(host.author(actor.to_owned()), with_host);
            assert_eq!(Visibility::whole().author(actor.to_owned()), actor);
        }
        let cause = Some("a-1".to_owned());
        assert_eq!(host.cause(cause.clone()), None);
        assert_eq!(Visibility::whole().cause(cause.clone()), cause);
        assert_eq!(host.extent(&at("/public/units")), VisibleExtent::Part);
    }
}
