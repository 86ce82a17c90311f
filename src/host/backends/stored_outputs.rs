//! Command output beyond what results show, kept in memory for a while for the agent that ran the command.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::helper_client::{Capture, CapturedOutput};
use gatewren_base::sys::{lock, random_bytes};

/// How much of one output is kept: 256 kB, mostly its beginning. The middle of a longer one is left
/// out.
pub const KEPT: Capture = Capture {
    head: 240 * 1024,
    tail: 16 * 1024,
};

/// The maximum number of outputs, 4 MB in total; a further one evicts the oldest.
const MOST: usize = 16;

/// How long each output is kept.
pub const KEPT_FOR: Duration = Duration::from_mins(15);

/// The stored outputs; clones share them.
#[derive(Debug, Clone, Default)]
pub struct StoredOutputs {
    newest_last: Arc<Mutex<VecDeque<StoredOutput>>>,
}

#[derive(Debug)]
struct StoredOutput {
    id: String,
    agent: Arc<str>,
    output: Arc<CapturedOutput>,
    until: Instant,
}

impl StoredOutputs {
    /// Stores an output for an agent and returns an unguessable id; `None` if no random bytes are
    /// available.
    pub fn keep(&self, agent: &Arc<str>, output: CapturedOutput) -> Option<String> {
        let id = format!("out_{:016x}", u64::from_ne_bytes(random_bytes().ok()?));
        let kept = StoredOutput {
            id: id.clone(),
            agent: agent.clone(),
            output: Arc::new(output),
            until: Instant::now() + KEPT_FOR,
        };
        let mut all = self.all();
        if all.len() >= MOST {
            all.pop_front();
        }
        all.push_back(kept);
        Some(id)
    }

    /// Returns an output of this agent's command; `None` also for another agent's.
    pub fn find(&self, agent: &str, id: &str) -> Option<Arc<CapturedOutput>> {
        let all = self.all();
        let mut its_own = all.iter().filter(|kept| &*kept.agent == agent);
        its_own
            .find(|kept| kept.id == id)
            .map(|kept| kept.output.clone())
    }

    /// Removes expired outputs and returns the rest.
    fn all(&self) -> std::sync::MutexGuard<'_, VecDeque<StoredOutput>> {
        let mut all = lock(&self.newest_last);
        let now = Instant::now();
        all.retain(|kept| kept.until > now);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(text: &str) -> CapturedOutput {
        CapturedOutput {
            head: text.into(),
            tail: Vec::new(),
            total_bytes: text.len() as u64,
        }
    }

    #[test]
    fn an_agent_finds_its_own_outputs_and_the_oldest_go_first() {
        let kept = StoredOutputs::default();
        let (ada, bert): (Arc<str>, Arc<str>) = ("ada".into(), "bert".into());
        let first = kept.keep(&ada, output("first")).unwrap();
        assert_eq!(*kept.find("ada", &first).unwrap(), output("first"));
        assert!(kept.find("bert", &first).is_none(), "another's");
        assert!(kept.find("ada", "out_0000000000000000").is_none());
        for _ in 1..MOST {
            kept.keep(&bert, output("next")).unwrap();
        }
        assert!(kept.find("ada", &first).is_some(), "there was room");
        let last = kept.keep(&bert, output("last")).unwrap();
        assert!(kept.find("ada", &first).is_none(), "it was the oldest");
        assert_eq!(*kept.find("bert", &last).unwrap(), output("last"));
    }
}
