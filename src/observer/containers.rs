//! What is known of the containers, refreshed as cheaply as the occasion allows.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::time::timeout;

use crate::backends::{
    BackendError, ContainerDetails, ContainerName, ContainerState, ErrorKind, Lxc,
};

use super::container_facts;

/// How long the question about one container may take; then the others are not kept waiting any longer.
const ONE_LOOK: Duration = Duration::from_secs(2);

/// How old configuration and operating system of a container may be; a look then reads them again.
const SLOW_FACTS: Duration = Duration::from_mins(1);

/// How long a failure that may pass by itself is left out of the document.
const PATIENCE: Duration = Duration::from_secs(10);

/// How closely to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Which containers there are, and at the new ones in full.
    Names,
    /// At how each one stands as well.
    States,
}

/// The containers as they were seen last.
#[derive(Debug)]
pub struct Containers {
    lxc: Lxc,
    known: BTreeMap<ContainerName, Known>,
    failing_since: Option<Instant>,
    why_not: Option<String>,
}

#[derive(Debug)]
struct Known {
    details: ContainerDetails,
    read_at: Instant,
}

impl Containers {
    /// None is known yet.
    pub fn new(lxc: Lxc) -> Self {
        Self {
            lxc,
            known: BTreeMap::new(),
            failing_since: None,
            why_not: None,
        }
    }

    /// Why there is nothing to be known of containers on this box at present, if so.
    pub fn why_not(&self) -> Option<&str> {
        self.why_not.as_deref()
    }

    /// `/public/packageData`.
    pub fn document(&self) -> Value {
        let entry = |(name, known): (&ContainerName, &Known)| {
            (name.to_string(), container_facts::container(&known.details))
        };
        Value::Object(self.known.iter().map(entry).collect())
    }

    /// Looks at all of them.
    ///
    /// # Errors
    /// When they cannot be listed; what was known stays known, unless it turns out that this box has no
    /// containers at all.
    pub async fn look(&mut self, how: Look) -> Result<(), BackendError> {
        let names = self.lxc.list().await;
        self.judge(names.as_ref().err());
        let names = names?;
        self.known
            .retain(|name, _| names.binary_search(name).is_ok());
        let mut result = Ok(());
        for name in names {
            if how == Look::States || !self.known.contains_key(&name) {
                result = self.look_at(&name).await.and(result);
            }
        }
        result
    }

    /// Takes a change as it was reported, then looks at the container it happened to.
    pub async fn hear(
        &mut self,
        name: &ContainerName,
        state: ContainerState,
    ) -> Result<(), BackendError> {
        if let Some(known) = self.known.get_mut(name) {
            known.details.state = state;
            if state == ContainerState::Stopped {
                // Said here, because LXC may be slow to answer while it tidies up behind a container.
                known.details.init_pid = None;
                known.details.addresses.clear();
            }
        }
        self.look_at(name).await
    }

    async fn look_at(&mut self, name: &ContainerName) -> Result<(), BackendError> {
        let slow = |_| {
            let words = format!("container '{name}' did not say in time how it stands");
            BackendError::new(ErrorKind::Failed, words)
        };
        let looked = timeout(ONE_LOOK, self.refresh(name)).await.map_err(slow);
        match looked.and_then(|result| result) {
            // It went away between the list and the look, or its configuration did.
            Err(cause) if cause.kind == ErrorKind::NotFound => {
                self.known.remove(name);
                Ok(())
            }
            result => result,
        }
    }

    async fn refresh(&mut self, name: &ContainerName) -> Result<(), BackendError> {
        if let Some(known) = self.known.get_mut(name)
            && known.read_at.elapsed() < SLOW_FACTS
        {
            let status = self.lxc.status(name).await?;
            let same_run = status.init_pid == known.details.init_pid;
            known.details.state = status.state;
            known.details.init_pid = status.init_pid;
            known.details.addresses = status.addresses;
            if same_run {
                return Ok(());
            }
        }
        let details = self.lxc.info(name).await?;
        let read_at = Instant::now();
        self.known.insert(name.clone(), Known { details, read_at });
        Ok(())
    }

    /// What a listing means for the whole: a missing tool is believed at once, silence after a while.
    fn judge(&mut self, failure: Option<&BackendError>) {
        let Some(cause) = failure else {
            self.failing_since = None;
            self.why_not = None;
            return;
        };
        let since = *self.failing_since.get_or_insert_with(Instant::now);
        let lasting = cause.kind == ErrorKind::Unavailable && !cause.retry;
        if lasting {
            self.known.clear();
        }
        if lasting || since.elapsed() > PATIENCE {
            self.why_not = Some(cause.to_string());
        }
    }
}
