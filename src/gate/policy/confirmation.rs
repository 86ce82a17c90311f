//! Confirmations by the person at a client: a clear yes, given once and in time, lets a call run.

use std::collections::HashMap;
use std::fmt;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::Instant;
use uuid::Uuid;

use super::question::CHECKBOX;
use crate::auth::AgentId;
use gatewren_base::sys::lock;
use gatewren_wire::registry::Permit;

/// How long a call waits for the owner's decision.
pub const PATIENCE: Duration = Duration::from_mins(5);

/// The limit of open questions of an agent. Further ones are refused, so that an agent cannot wear the person down.
const MAX_OPEN: usize = 8;

/// The call in question. A yes is valid only for exactly this call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallToConfirm {
    /// The calling agent.
    pub agent: AgentId,
    /// The session, in the protocol revisions that have sessions.
    pub session: Option<String>,
    /// The tool's own name.
    pub tool: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
}

/// The result of a question.
#[must_use]
#[derive(Debug)]
pub enum Confirmation {
    /// A clear yes, with the permit for the call.
    Accepted(Permit),
    /// A no, or a yes without the tick.
    Declined,
    /// The person dismissed the form.
    Dismissed,
    /// The answer is missing or invalid.
    Malformed,
    /// The answer came too late.
    Late,
}

impl Confirmation {
    /// Returns the word for it in the audit.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Accepted(_) => "accepted",
            Self::Declined => "declined",
            Self::Dismissed => "dismissed",
            Self::Malformed => "malformed",
            Self::Late => "timeout",
        }
    }
}

/// The open questions, each with a value that is kept for it. They are lost when the process ends: an answer after
/// a restart finds no question.
pub struct Confirmations<K>(Mutex<HashMap<String, Open<K>>>);

struct Open<K> {
    asking: CallToConfirm,
    until: Instant,
    kept: K,
}

impl<K> Default for Confirmations<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K> fmt::Debug for Confirmations<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Confirmations")
    }
}

impl<K> Confirmations<K> {
    /// Opens a question for this long and returns the id that the answer has to name. Returns `kept` if the agent has
    /// too many open questions.
    pub fn open(&self, asking: CallToConfirm, timeout: Duration, kept: K) -> Result<String, K> {
        let mut open = lock(&self.0);
        let of_agent = open.values().filter(|o| o.asking.agent == asking.agent);
        if of_agent.count() >= MAX_OPEN {
            return Err(kept);
        }
        let id = Uuid::new_v4().simple().to_string();
        let until = Instant::now() + timeout;
        let question = Open {
            asking,
            until,
            kept,
        };
        open.insert(id.clone(), question);
        Ok(id)
    }

    /// Closes a question with any answer. Returns `None` if there is no open question for this call: the id is
    /// unknown, or the question was answered or given up.
    pub fn close(
        &self,
        id: &str,
        asking: &CallToConfirm,
        answer: Option<&Value>,
    ) -> Option<(K, Confirmation)> {
        let mut open = lock(&self.0);
        if open.get(id)?.asking != *asking {
            return None;
        }
        let Open { until, kept, .. } = open.remove(id)?;
        let reply = if until <= Instant::now() {
            Confirmation::Late
        } else {
            answer.map_or(Confirmation::Malformed, reply)
        };
        Some((kept, reply))
    }

    /// Closes a question without an answer.
    pub fn discard(&self, id: &str) -> Option<K> {
        lock(&self.0).remove(id).map(|open| open.kept)
    }
}

/// Parses the answer to a form (2026-07-28, client/elicitation). Only `accept` with the box ticked is a yes.
fn reply(answer: &Value) -> Confirmation {
    let content = answer.get("content");
    match answer.get("action").and_then(Value::as_str) {
        Some("accept") => match content.and_then(|content| content.get(CHECKBOX)) {
            Some(Value::Bool(true)) => Confirmation::Accepted(Permit::granted_by_policy()),
            Some(Value::Bool(false)) => Confirmation::Declined,
            _ => Confirmation::Malformed,
        },
        Some("decline") => Confirmation::Declined,
        Some("cancel") => Confirmation::Dismissed,
        _ => Confirmation::Malformed,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call_to_confirm() -> CallToConfirm {
        CallToConfirm {
            agent: AgentId::from("a"),
            session: None,
            tool: "stop".to_owned(),
            arguments: Map::from_iter([("container".to_owned(), json!("web"))]),
        }
    }

    fn accept_answer() -> Value {
        json!({ "action": "accept", "content": { "run": true } })
    }

    #[test]
    fn only_a_clear_yes_is_one() {
        assert_eq!(reply(&accept_answer()).as_str(), "accepted");
        for (answer, word) in [
            (
                json!({ "action": "accept", "content": { "run": false } }),
                "declined",
            ),
            (
                json!({ "action": "decline", "content": { "run": true } }),
                "declined",
            ),
            (json!({ "action": "cancel" }), "dismissed"),
            (json!({ "action": "accept" }), "malformed"),
            (json!({ "action": "accept", "content": {} }), "malformed"),
            (
                json!({ "action": "accept", "content": { "run": "true" } }),
                "malformed",
            ),
            (
                json!({ "action": "accept", "content": { "run": 1 } }),
                "malformed",
            ),
            (
                json!({ "action": "accept", "content": [true] }),
                "malformed",
            ),
            (
                json!({ "action": "ACCEPT", "content": { "run": true } }),
                "malformed",
            ),
            (
                json!({ "action": true, "content": { "run": true } }),
                "malformed",
            ),
            (json!({ "content": { "run": true } }), "malformed"),
            (json!([]), "malformed"),
            (json!(true), "malformed"),
            (Value::Null, "malformed"),
        ] {
            assert_eq!(reply(&answer).as_str(), word, "{answer}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_yes_is_good_once_in_time_and_for_its_call_alone() {
        let open = Confirmations::default();
        let word = |id: &str, asking: &CallToConfirm| {
            let closed = open.close(id, asking, Some(&accept_answer()));
            closed.map(|(kept, reply)| (kept, reply.as_str()))
        };
        let id = open.open(call_to_confirm(), PATIENCE, 1).unwrap();
        let others: [fn(&mut CallToConfirm); 4] = [
            |other| other.agent = AgentId::from("b"),
            |other| other.session = Some("s".to_owned()),
            |other| other.tool = "start".to_owned(),
            |other| drop(other.arguments.insert("grace_s".to_owned(), json!(0))),
        ];
        for change in others {
            let mut other = call_to_confirm();
            change(&mut other);
            assert_eq!(word(&id, &other), None, "{other:?}");
        }
        assert_eq!(word("", &call_to_confirm()), None);
        assert_eq!(word(&id, &call_to_confirm()), Some((1, "accepted")));
        assert_eq!(word(&id, &call_to_confirm()), None, "it was used");

        let late = open.open(call_to_confirm(), PATIENCE, 2).unwrap();
        tokio::time::advance(PATIENCE).await;
        assert_eq!(word(&late, &call_to_confirm()), Some((2, "timeout")));

        let silent = open.open(call_to_confirm(), PATIENCE, 3).unwrap();
        let closed = open.close(&silent, &call_to_confirm(), None).unwrap();
        assert_eq!((closed.0, closed.1.as_str()), (3, "malformed"));
        assert_eq!(
            word(&silent, &call_to_confirm()),
            None,
            "what was said badly is said"
        );
        assert_eq!(
            open.discard(&open.open(call_to_confirm(), PATIENCE, 4).unwrap()),
            Some(4)
        );
    }

    #[test]
    fn an_agent_cannot_wear_a_person_down() {
        let open = Confirmations::default();
        let ids: Vec<String> = (0..MAX_OPEN)
            .map(|n| open.open(call_to_confirm(), PATIENCE, n).unwrap())
            .collect();
        assert_eq!(open.open(call_to_confirm(), PATIENCE, 99), Err(99));
        let other = CallToConfirm {
            agent: AgentId::from("b"),
            ..call_to_confirm()
        };
        assert!(open.open(other, PATIENCE, 0).is_ok());
        open.discard(&ids[0]);
        assert!(open.open(call_to_confirm(), PATIENCE, 0).is_ok());
    }
}
