//! The firewall's rules as data, from `nft` (libnftables-json(5)).

use std::path::Path;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::helper_client::Operation;

use super::super::error::BackendError;
use super::super::request::ask_json;
use super::reach::Network;

/// The timeout for `nft`.
const PATIENCE: Duration = Duration::from_secs(30);

/// The possible paths of the program.
const PLACES: [&str; 2] = ["/usr/sbin/nft", "/sbin/nft"];

/// The maximum size of the rules in one answer, in bytes of JSON; the next answer has the rest.
const ANSWER_BYTES: usize = 16_000;

/// The firewall.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Firewall {
    /// Its tables, in the kernel's order.
    pub tables: Vec<FirewallTable>,
    /// Its chains, in the kernel's order.
    pub chains: Vec<FirewallChain>,
    /// Rules from the requested offset, in evaluation order within their chain.
    pub rules: Vec<FirewallRule>,
    /// The total number of rules.
    pub total: usize,
    /// The offset of the next rules; absent if there are no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<usize>,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FirewallTable {
    /// Its family: `ip`, `ip6`, `inet`, `arp`, `bridge` or `netdev`.
    pub family: String,
    /// Its name.
    pub name: String,
}

/// A chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FirewallChain {
    /// The family of its table.
    pub family: String,
    /// Its table.
    pub table: String,
    /// Its name.
    pub name: String,
    /// The hook where packets enter it, such as `input`; absent for a chain that other chains jump
    /// to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hook: Option<String>,
    /// Its type, such as `filter` or `nat`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Its priority at the hook; lower ones run first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// The verdict for packets that no rule decides: `accept` or `drop`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FirewallRule {
    /// The family of its table.
    pub family: String,
    /// Its table.
    pub table: String,
    /// Its chain.
    pub chain: String,
    /// Its handle in the table.
    pub handle: u64,
    /// Its comment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Its matches and actions in order: statements of libnftables-json(5).
    pub expr: Vec<Value>,
}

impl Network {
    /// Whether a firewall can be read on this host.
    pub fn has_firewall() -> bool {
        PLACES.iter().any(|place| Path::new(place).exists())
    }

    /// Returns tables, chains, and the rules from an offset on; only of `table` if it is set.
    ///
    /// # Errors
    /// When the owner's file does not allow it.
    pub async fn firewall(
        &self,
        table: Option<&str>,
        offset: usize,
        reference: &str,
    ) -> Result<Firewall, BackendError> {
        let operation = Operation::HostFirewall {};
        let ruleset: Value = ask_json(&self.helper, operation, PATIENCE, reference).await?;
        Ok(read(ruleset, table, offset))
    }
}

fn read(mut ruleset: Value, table: Option<&str>, offset: usize) -> Firewall {
    let objects = ruleset.get_mut("nftables").map(Value::take);
    let objects = match objects {
        Some(Value::Array(objects)) => objects,
        _ => Vec::new(),
    };
    let (mut tables, mut chains, mut all) = (Vec::new(), Vec::new(), Vec::new());
    let wanted = |name: &str| table.is_none_or(|table| table == name);
    for object in objects {
        let Value::Object(object) = object else {
            continue;
        };
        for (kind, value) in object {
            let Value::Object(it) = value else { continue };
            match kind.as_str() {
                "table" if wanted(&word(&it, "name")) => tables.push(FirewallTable {
                    family: word(&it, "family"),
                    name: word(&it, "name"),
                }),
                "chain" if wanted(&word(&it, "table")) => chains.push(chain(&it)),
                "rule" if wanted(&word(&it, "table")) => all.push(rule(it)),
                _ => {}
            }
        }
    }
    let total = all.len();
    let rules = part(all, offset);
    let next = offset + rules.len();
    Firewall {
        tables,
        chains,
        next_offset: (next < total).then_some(next),
        total,
        rules,
    }
}

/// Returns as many rules as fit into an answer, and at least one.
fn part(all: Vec<FirewallRule>, offset: usize) -> Vec<FirewallRule> {
    let mut left = ANSWER_BYTES;
    let mut rules: Vec<FirewallRule> = Vec::new();
    for rule in all.into_iter().skip(offset) {
        let size = serde_json::to_vec(&rule).map_or(0, |json| json.len());
        if size > left && !rules.is_empty() {
            break;
        }
        left = left.saturating_sub(size);
        rules.push(rule);
    }
    rules
}

fn chain(it: &Map<String, Value>) -> FirewallChain {
    FirewallChain {
        family: word(it, "family"),
        table: word(it, "table"),
        name: word(it, "name"),
        hook: text(it, "hook"),
        kind: text(it, "type"),
        priority: it.get("prio").and_then(Value::as_i64),
        policy: text(it, "policy"),
    }
}

fn rule(mut it: Map<String, Value>) -> FirewallRule {
    let expr = match it.remove("expr") {
        Some(Value::Array(expr)) => expr,
        _ => Vec::new(),
    };
    FirewallRule {
        family: word(&it, "family"),
        table: word(&it, "table"),
        chain: word(&it, "chain"),
        handle: it.get("handle").and_then(Value::as_u64).unwrap_or(0),
        comment: text(&it, "comment"),
        expr,
    }
}

fn text(it: &Map<String, Value>, name: &str) -> Option<String> {
    it.get(name)?.as_str().map(str::to_owned)
}

fn word(it: &Map<String, Value>, name: &str) -> String {
    text(it, name).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Printed by `nft --json list ruleset` 1.0.6 in a network namespace with a small firewall.
    fn recorded() -> Value {
        json!({ "nftables": [
            { "metainfo": { "version": "1.0.6", "release_name": "Lester Gooch #5", "json_schema_version": 1 } },
            { "table": { "family": "inet", "name": "filter", "handle": 1 } },
            { "chain": { "family": "inet", "table": "filter", "name": "input", "handle": 1, "type": "filter",
                "hook": "input", "prio": 0, "policy": "drop" } },
            { "rule": { "family": "inet", "table": "filter", "chain": "input", "handle": 2, "comment": "ssh",
                "expr": [{ "match": { "op": "==", "left": { "payload": { "protocol": "tcp", "field": "dport" } },
                "right": 22 } }, { "accept": null }] } },
            { "table": { "family": "ip", "name": "nat", "handle": 2 } },
            { "chain": { "family": "ip", "table": "nat", "name": "other", "handle": 1 } },
        ] })
    }

    #[test]
    fn rules_are_data() {
        let all = read(recorded(), None, 0);
        assert_eq!((all.tables.len(), all.chains.len(), all.total), (2, 2, 1));
        let [rule] = all.rules.as_slice() else {
            panic!("{all:?}");
        };
        assert_eq!(
            (rule.chain.as_str(), rule.comment.as_deref()),
            ("input", Some("ssh"))
        );
        assert_eq!(rule.expr[1], json!({ "accept": null }));
        assert_eq!(all.chains[0].policy.as_deref(), Some("drop"));
        let nat = read(recorded(), Some("nat"), 0);
        assert_eq!((nat.tables.len(), nat.chains.len(), nat.total), (1, 1, 0));
        assert_eq!(nat.chains[0].hook, None);
        for odd in [
            json!(null),
            json!({ "nftables": [1, { "rule": 2 }, { "rule": {} }] }),
        ] {
            let _ = read(odd, None, 7);
        }
    }

    #[test]
    fn many_rules_come_in_parts() {
        let rule = json!({ "rule": { "table": "t", "chain": "c", "handle": 1, "expr": [{ "drop": "x".repeat(1000) }] } });
        let many = json!({ "nftables": vec![rule; 40] });
        let first = read(many.clone(), None, 0);
        let next = first.next_offset.unwrap();
        assert_eq!((first.total, first.rules.len()), (40, next));
        let last = read(many, None, 39);
        assert_eq!((last.rules.len(), last.next_offset), (1, None));
    }
}
