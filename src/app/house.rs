//! The house: everything that a running gatewren holds.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{
    names::{box_addresses, box_names},
    serving::Serving,
};
use crate::config::Settings;
use crate::dispatch::Engine;
use crate::guard::{Guard, Hosts};
use crate::helper_client::HelperChild;
use crate::observer::Observer;
use crate::state::State;
use crate::telemetry::Notify;
use crate::vault::Vault;

/// A running gatewren.
pub struct House {
    /// Where clients reach it.
    pub url: String,
    /// What it was told.
    pub settings: Settings,
    /// The box as a document.
    pub state: State,
    /// What is remembered and secret.
    pub vault: Vault,
    /// Answers calls.
    pub engine: Arc<Engine>,
    /// Serves connections.
    pub serving: Arc<Serving>,
    /// The service manager.
    pub notify: Arc<Notify>,
    /// Turned true to stop.
    pub stop: watch::Sender<bool>,
    pub(super) observer: Mutex<Option<Observer>>,
    pub(super) helper: Mutex<Option<HelperChild>>,
}

impl House {
    /// Starts what runs beside the connections.
    pub fn start_workers(&self, workers: &mut JoinSet<()>) {
        if let Some(observer) = lock(&self.observer).take() {
            let mut stop = self.stop.subscribe();
            workers.spawn(observer.run(async move {
                let _ = stop.wait_for(|stop| *stop).await;
            }));
        }
    }

    /// Reads the certificate again and follows the box's names and addresses; streams stay open.
    pub fn reload(&self) {
        self.notify.reloading();
        self.serving.front.guard.set_hosts(hosts(&self.settings));
        if let Some(tls) = &self.serving.tls {
            match tls.reload() {
                Ok(()) => tracing::info!("reloaded"),
                Err(cause) => {
                    tracing::error!(%cause, "the certificate was not reloaded; the old one stays");
                }
            }
        }
        self.notify.ready();
    }

    /// Ends the helper that this house started, if it did, with everything that it runs.
    pub async fn close_helper(&self) {
        let helper = lock(&self.helper).take();
        if let Some(helper) = helper {
            helper.stop().await;
        }
    }

    /// Who comes in.
    pub fn guard(&self) -> &Guard {
        &self.serving.front.guard
    }
}

/// The hosts and origins that are allowed now.
pub fn hosts(settings: &Settings) -> Hosts {
    let mut names = box_names(&settings.names);
    let mut addresses = box_addresses();
    for allowed in &settings.access.allowed_hosts {
        match allowed.parse() {
            Ok(address) => addresses.push(address),
            Err(_) => names.push(allowed.clone()),
        }
    }
    Hosts {
        names,
        addresses,
        origins: settings.access.allowed_origins.clone(),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
