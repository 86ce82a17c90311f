//! The settings in force: they may be read again while the server runs, and whoever needs one asks for it then.

use std::sync::Arc;

use tokio::sync::watch;

use super::settings::Settings;

/// The settings in force, the front's or another's. What takes their place is what every [`Live`] shows from then on.
#[derive(Debug)]
pub struct InForce<T = Settings>(watch::Sender<Arc<T>>);

impl<T> InForce<T> {
    /// These, to begin with.
    pub fn new(settings: T) -> Self {
        Self(watch::Sender::new(Arc::new(settings)))
    }

    /// A view for whoever must follow them.
    pub fn live(&self) -> Live<T> {
        Live(self.0.subscribe())
    }

    /// All of them as they are now.
    pub fn now(&self) -> Arc<T> {
        Arc::clone(&self.0.borrow())
    }

    /// Puts others in their place.
    pub fn replace(&self, settings: T) {
        self.0.send_replace(Arc::new(settings));
    }
}

/// A view of the settings in force, asked for each request. A clone is as cheap as a pointer.
#[derive(Debug)]
pub struct Live<T = Settings>(watch::Receiver<Arc<T>>);

impl<T> Clone for Live<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Live<T> {
    /// Looks at what holds now; asking costs no copy of the settings.
    pub fn read<V>(&self, look: impl FnOnce(&T) -> V) -> V {
        look(&self.0.borrow())
    }

    /// All of them as they are now.
    pub fn now(&self) -> Arc<T> {
        Arc::clone(&self.0.borrow())
    }

    /// Whether these are still the ones.
    pub fn is(&self, settings: &Arc<T>) -> bool {
        Arc::ptr_eq(&self.0.borrow(), settings)
    }

    /// From here on [`Self::changed`] waits for others than those of now.
    pub fn mark_unchanged(&mut self) {
        self.0.mark_unchanged();
    }

    /// Waits until others are in force; for ever where nobody reads them again.
    pub async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Settings that stay as they are.
impl<T> From<T> for Live<T> {
    fn from(settings: T) -> Self {
        Self(watch::Sender::new(Arc::new(settings)).subscribe())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_follows_sees_what_took_the_place_and_hears_of_it() {
        let in_force = InForce::new(Settings::default());
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
