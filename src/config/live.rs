//! The settings in force: they may be read again while the server runs, and whoever needs one asks for it then.

use std::sync::Arc;

use tokio::sync::watch;

use super::settings::Settings;

/// The settings in force. What takes their place is what every [`Live`] shows from then on.
#[derive(Debug)]
pub struct InForce(watch::Sender<Arc<Settings>>);

impl InForce {
    /// These, to begin with.
    pub fn new(settings: Settings) -> Self {
        Self(watch::Sender::new(Arc::new(settings)))
    }

    /// A view for whoever must follow them.
    pub fn live(&self) -> Live {
        Live(self.0.subscribe())
    }

    /// All of them as they are now.
    pub fn now(&self) -> Arc<Settings> {
        Arc::clone(&self.0.borrow())
    }

    /// Puts others in their place.
    pub fn replace(&self, settings: Settings) {
        self.0.send_replace(Arc::new(settings));
    }
}

/// A view of the settings in force, asked for each request. A clone is as cheap as a pointer.
#[derive(Debug, Clone)]
pub struct Live(watch::Receiver<Arc<Settings>>);

impl Live {
    /// Looks at what holds now; asking costs no copy of the settings.
    pub fn read<T>(&self, look: impl FnOnce(&Settings) -> T) -> T {
        look(&self.0.borrow())
    }

    /// All of them as they are now.
    pub fn now(&self) -> Arc<Settings> {
        Arc::clone(&self.0.borrow())
    }

    /// Whether these are still the ones.
    pub fn is(&self, settings: &Arc<Settings>) -> bool {
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
impl From<Settings> for Live {
    fn from(settings: Settings) -> Self {
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
