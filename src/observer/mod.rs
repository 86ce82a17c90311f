//! stub
use crate::backends::{Host, Lxc};
use crate::state::State;
use std::sync::Arc;
use tokio::sync::watch;
pub struct Observer {
    s: State,
}
#[derive(Clone)]
pub struct Nudge {
    s: State,
}
impl Observer {
    pub fn new(s: State, _: Arc<Lxc>, _: Arc<Host>) -> Self {
        Self { s }
    }
    pub fn nudge(&self) -> Nudge {
        Nudge { s: self.s.clone() }
    }
    pub async fn run(self, mut stop: watch::Receiver<bool>) {
        let _ = stop.wait_for(|s| *s).await;
    }
}
impl Nudge {
    pub async fn settled(&self) -> u64 {
        self.s.document().revision
    }
}
