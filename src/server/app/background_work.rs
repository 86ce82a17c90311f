//! The background work: what each front does, and what one of several does for all.

use tokio::task::JoinSet;

use super::disk_notices::notify_of_disks;
use super::inbox_notices::notify_of_changes;
use super::job_ends::record_job_ends;
use super::notice_logs::log_notifications;
use super::notifier::send_notifications;
use super::running_server::{Server, vault_file};
use super::token_warnings::warn_of_expiring_tokens;
use super::unguarded_agents::log_unguarded_agents;
use super::{audit, helper_capabilities, session_notices};
use crate::dispatch::{end_abandoned_changes, end_abandoned_runs, end_abandoned_tasks};
use gatewren_base::config::WorkerSettings;
use gatewren_base::sys::{hold_few_program_pages, lock};
use gatewren_gate::auth::Agents;
use gatewren_host::backends::Storage;
use gatewren_store::state::Notifications;
use gatewren_store::vault::{Vault, VaultError};
use gatewren_tools::watches::WatchMonitor;

/// Ends the tasks and changes that the last run left open, before this run creates any. Beside another front it ends
/// only the tasks of its own name: the rest may still run there.
pub async fn end_abandoned_work(
    vault: &Vault,
    is_first: bool,
    instance: &str,
) -> Result<(), VaultError> {
    end_abandoned_tasks(vault, (!is_first).then_some(instance)).await?;
    if is_first {
        end_abandoned_changes(vault).await?;
        end_abandoned_runs(vault).await?;
    }
    Ok(())
}

impl Server {
    /// Starts the background tasks: those of each front, and those that one front does for all, if this is the one.
    pub fn start_workers(&self, workers: &mut JoinSet<()>) {
        workers.spawn(hold_few_program_pages());
        log_unguarded_agents(&self.vault, &self.in_force.now().spaces);
        if let Some(messages) = self.engine.catalog.session_message_sender() {
            workers.spawn(log_notifications(self.state.clone(), messages.clone()));
            let endpoint = self.serving.front.endpoint.clone();
            let settings = self.in_force.now();
            match session_notices::listen(&settings.state_dir, &settings.sessions.instance) {
                Ok(socket) => {
                    workers.spawn(session_notices::serve(socket, messages, endpoint));
                }
                Err(cause) => tracing::warn!(%cause, "gatewren session notify will not work"),
            }
        }
        workers.spawn(helper_capabilities::announce(
            self.engine.clone(),
            self.vault.clone(),
            self.bounds.clone(),
        ));
        if self.locks.workers.is_held() {
            self.start_shared_workers(workers);
        } else {
            tracing::info!("another front does the background work");
        }
    }

    /// Starts the background work that one front does, because the front that did it has ended.
    pub async fn take_over(&self, workers: &mut JoinSet<()>) {
        tracing::info!("this front does the background work from now on");
        // Only the front that does this work runs changes and schedules, so none of them runs now.
        for ended in [
            end_abandoned_changes(&self.vault).await,
            end_abandoned_runs(&self.vault).await,
        ] {
            if let Err(cause) = ended {
                tracing::error!(%cause, "cannot end what another front has left");
            }
        }
        self.start_shared_workers(workers);
    }

    /// Starts what one front does for all, without what the owner has switched off.
    fn start_shared_workers(&self, workers: &mut JoinSet<()>) {
        let on = if self.engine.catalog.is_demo {
            WorkerSettings::NONE
        } else {
            self.in_force.now().workers
        };
        self.start_observer(workers, on.observer);
        if on.sweeper {
            let engine = self.engine.clone();
            workers.spawn(async move { engine.sweep_tasks().await });
            workers.spawn(audit::keep(self.vault.clone(), self.in_force.live()));
        }
        workers.spawn(self.engine.clone().run_approved());
        let audit = vault_file(&self.in_force.now());
        if let Some(scrape) = &self.serving.front.scrape {
            let (vault, state) = (self.vault.clone(), self.state.clone());
            workers.spawn(record_job_ends(scrape.jobs(), vault, state, audit));
        }
        if on.jobs {
            workers.spawn(self.engine.clone().run_schedules());
            self.start_watches(workers);
        }
        if on.notifier {
            self.start_notifier(workers);
        }
        let off = on.switched_off().join(" ");
        if !off.is_empty() {
            tracing::info!(off, "background work is switched off");
        }
    }

    /// Starts the observer and the sampler. While they are off they are dropped: no caller waits for their looks.
    fn start_observer(&self, workers: &mut JoinSet<()>, is_on: bool) {
        let (observer, sampler) = (lock(&self.observer).take(), lock(&self.sampler).take());
        if let Some(observer) = observer.filter(|_| is_on) {
            let mut stop = self.stop.subscribe();
            workers.spawn(observer.run(async move {
                let _ = stop.wait_for(|stop| *stop).await;
            }));
        }
        if let Some(sampler) = sampler.filter(|_| is_on) {
            if let Some(site) = &self.serving.front.site {
                workers.spawn(site.keep_samples(sampler.readings()));
            }
            workers.spawn(sampler.run());
        }
    }

    /// Starts what notifies the owner.
    fn start_notifier(&self, workers: &mut JoinSet<()>) {
        workers.spawn(notify_of_changes(self.vault.clone(), self.state.clone()));
        workers.spawn(warn_of_expiring_tokens(
            self.vault.clone(),
            self.state.clone(),
        ));
        if Storage::has_health() {
            workers.spawn(notify_of_disks(
                self.probes.storage.clone(),
                self.state.clone(),
            ));
        }
        workers.spawn(send_notifications(
            self.vault.clone(),
            self.state.clone(),
            self.in_force.live(),
            self.notification_sender.clone(),
        ));
    }

    /// Starts the checks of the agents' watches.
    fn start_watches(&self, workers: &mut JoinSet<()>) {
        let agents = match Agents::new(self.vault.clone(), self.in_force.live()) {
            Ok(agents) => agents,
            Err(cause) => {
                tracing::error!(%cause, "cannot read the agents; watches are not checked");
                return;
            }
        };
        let monitor = WatchMonitor {
            vault: self.vault.clone(),
            agents,
            probes: self.probes.clone(),
            notifications: Notifications::new(self.state.clone()),
        };
        workers.spawn(monitor.run());
    }
}
