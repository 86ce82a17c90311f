//! Watches the host: looks at its facts now and then.

use std::time::Duration;

use serde_json::Value;
use tokio::time::sleep;

use crate::backends::Host;

use super::handle::Requests;
use super::host_facts;
use super::scribe::Scribe;

/// How often the host is looked at without a reason.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// The watcher of `/public/serverInfo`.
#[derive(Debug)]
pub struct HostWatch {
    host: Host,
    scribe: Scribe,
    requests: Requests,
}

impl HostWatch {
    /// One that has seen nothing yet.
    pub fn new(host: Host, scribe: Scribe, requests: Requests) -> Self {
        Self {
            host,
            scribe,
            requests,
        }
    }

    /// Watches for as long as it is polled.
    pub async fn run(mut self) {
        loop {
            let begun = self.requests.begin();
            self.look().await;
            self.requests.answer(begun);
            tokio::select! {
                () = self.requests.next() => {}
                () = sleep(LOOK_EVERY) => {}
            }
        }
    }

    async fn look(&mut self) {
        let facts = host_facts::server(&self.host.info(), &Host::mounts());
        self.scribe
            .write(&["public", "serverInfo"], Value::Object(facts))
            .await;
    }
}

#[cfg(test)]
mod tests {
    use crate::backends::Lxc;
    use crate::helper_client::Helper;
    use crate::sys::Scratch;

    use super::super::watched::Watched;

    #[tokio::test]
    async fn a_box_whose_helper_is_silent_still_has_its_host_facts() {
        let scratch = Scratch::new();
        let lxc = Lxc::new(Helper::connect_to(scratch.join("none.sock")));
        let watched = Watched::by(lxc, scratch.path());
        assert!(watched.look().await > 0);
        assert!(
            watched
                .at("/public/serverInfo/kernel")
                .is_some_and(|kernel| kernel.is_string())
        );
        let none = serde_json::json!({});
        assert_eq!(watched.at("/public/packageData"), Some(none));
        watched.end().await;
    }
}
