//! The current settings, which can be replaced while the server runs. Users read them for each request.

use std::sync::Arc;

use tokio::sync::watch;

use super::settings::Settings;

/// The owner of the current settings, of the front or another process. Every [`LiveSettings`] sees a replacement.
#[derive(Debug)]
pub struct LiveSettingsSender<T = Settings>(watch::Sender<Arc<T>>);

impl<T> LiveSettingsSender<T> {
    /// Starts with these settings.
    pub fn new(settings: T) -> Self {
        Self(watch::Sender::new(Arc::new(settings)))
    }

    /// Returns a view that follows replacements.
    pub fn live(&self) -> LiveSettings<T> {
        LiveSettings(self.0.subscribe())
    }

    /// Returns the current settings.
    pub fn now(&self) -> Arc<T> {
        Arc::clone(&self.0.borrow())
    }

    /// Replaces the settings.
    pub fn replace(&self, settings: T) {
        self.0.send_replace(Arc::new(settings));
    }
}

/// A view of the current settings, read for each request. Cloning costs as much as cloning an `Arc`.
#[derive(Debug)]
pub struct LiveSettings<T = Settings>(watch::Receiver<Arc<T>>);

impl<T> Clone for LiveSettings<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> LiveSettings<T> {
    /// Passes the current settings to `look`, without a copy.
    pub fn read<V>(&self, look: impl FnOnce(&T) -> V) -> V {
        look(&self.0.borrow())
    }

    /// Returns the current settings.
    pub fn now(&self) -> Arc<T> {
        Arc::clone(&self.0.borrow())
    }

    /// Returns whether these settings are still current.
    pub fn is(&self, settings: &Arc<T>) -> bool {
        Arc::ptr_eq(&self.0.borrow(), settings)
    }

    /// Marks the current settings as seen: [`Self::changed`] waits for the next ones.
    pub fn mark_unchanged(&mut self) {
        self.0.mark_unchanged();
    }

    /// Waits until the settings are replaced. Never returns if the `LiveSettingsSender` was dropped.
    pub async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Settings that never change.
impl<T> From<T> for LiveSettings<T> {
    fn from(settings: T) -> Self {
        Self(watch::Sender::new(Arc::new(settings)).subscribe())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_follows_sees_what_took_the_place_and_hears_of_it() {
        let in_force = LiveSettingsSender::new(Settings::default());
        let mut live = in_force.live();
        let before = live.now();
        assert!(live.is(&before) && !live.read(|s| s.access.http_sse));
        let mut after = Settings::default();
        after.access.http_sse = true;
        let ((), ()) = tokio::join!(live.changed(), async { in_force.replace(after) });
        assert!(live.read(|s| s.access.http_sse) && !live.is(&before));
        assert!(live.is(&in_force.now()));
        let mut late = in_force.live();
        late.mark_unchanged();
        drop(in_force);
        let wait = std::time::Duration::from_millis(1);
        assert!(tokio::time::timeout(wait, late.changed()).await.is_err());
        assert!(late.read(|s| s.access.http_sse), "the last ones stay");
    }
}
