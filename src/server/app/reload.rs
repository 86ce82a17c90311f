//! `systemctl reload`: reads the settings again and applies them.

use super::build::named;
use super::limits::{inbox_limits, retention, task_limits};
use super::running_server::{Server, certificate, certificate_words};
use gatewren_base::config::{Settings, SettingsReload};
use gatewren_base::sys::lock;
use gatewren_base::telemetry;
use gatewren_gate::guard::{EdgeCheck, RequiredHeader};

impl Server {
    /// Handles SIGHUP. Streams, sessions and calls continue; on an error, nothing is changed.
    pub fn reload(&self) {
        self.notify.reloading();
        let note = match self.read_again() {
            Ok(change) => log_changes(&change),
            Err(cause) => {
                tracing::error!("not reloaded, the previous settings stay in force: {cause}");
                Some(format!("not reloaded: {cause}"))
            }
        };
        *lock(&self.note) = note;
        self.notify.status(&self.status());
        self.notify.ready();
    }

    /// The status in one line.
    pub fn status(&self) -> String {
        let connections = self.serving.metrics.connections_open();
        let revision = self.state.document().revision;
        let url = &self.url;
        let mut words =
            format!("serving {url}; {connections} connections, state at revision {revision}");
        let note = lock(&self.note);
        if let Some(note) = &*note {
            words.push_str("; ");
            words.push_str(note);
        }
        words
    }

    /// Reads the settings again. Steps that can fail come before those that take effect.
    fn read_again(&self) -> Result<SettingsReload, String> {
        let now = self.in_force.now();
        let read = match &self.file {
            Some(file) => Settings::load(file).map_err(|error| error.summary())?,
            None => Settings::clone(&now),
        };
        let change = now.compare_with(named(read, self.instance.as_deref()));
        let settings = &change.settings;
        let edge = if settings.edge_jwt == now.edge_jwt {
            None
        } else {
            Some(EdgeCheck::of(&settings.edge_jwt).map_err(|error| error.to_string())?)
        };
        let required = RequiredHeader::of(&settings.access).map_err(|error| error.to_string())?;
        if let Some(tls) = &self.serving.tls {
            let source = certificate(settings).map_err(|error| error.to_string())?;
            tls.reload_from(source).map_err(|error| error.to_string())?;
            let certificate = certificate_words(tls);
            tracing::info!(certificate, "the certificate is in use");
        }
        if let Some(edge) = edge {
            self.serving.front.guard.set_edge(edge);
        }
        self.serving.front.guard.set_required_header(required);
        self.in_force.replace(settings.clone());
        self.adopt(settings);
        if settings.notify != now.notify {
            // Agents may have another set of channels now.
            self.engine.catalog.announce_tools_changed();
        }
        Ok(change)
    }

    /// Applies the settings to parts that do not read the settings in force themselves; also called at the start.
    pub(super) fn adopt(&self, settings: &Settings) {
        let front = &self.serving.front;
        self.answer_to(settings);
        if !settings.access.http_sse {
            front.http_sse.close();
        }
        self.engine
            .set_update_interval(settings.limits.update_interval);
        self.engine
            .set_confirm_timeout(settings.limits.confirm_timeout);
        self.engine.set_streaming(settings.access.streaming);
        self.engine.set_task_limits(task_limits(&settings.tasks));
        self.engine.set_inbox_limits(inbox_limits(&settings.inbox));
        self.state.set_retention(retention(&settings.state));
        telemetry::set_level(settings.log.level);
    }
}

/// Logs what a reload has changed; returns what is left to do.
fn log_changes(change: &SettingsReload) -> Option<String> {
    let changed = match change.changed.as_slice() {
        [] => "nothing".to_owned(),
        changed => changed.join(" "),
    };
    tracing::info!(changed, "reloaded");
    let waiting = change.waiting.join(", ");
    if waiting.is_empty() {
        return None;
    }
    let words = format!("{waiting}: a new value takes effect after systemctl restart gatewren");
    tracing::warn!("{words}");
    Some(words)
}
