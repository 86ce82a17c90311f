//! The texts of the latest updates, so that all subscribers of a resource share one.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::interests::ResourceUpdate;
use gatewren_base::sys::lock;
use gatewren_wire::protocol::{Notification, SharedNotification, key};

/// The number of texts in memory: changes of this many resources can be on their way to many subscribers at once.
const KEPT: usize = 8;

/// A longer text is not kept.
const LONGEST: usize = 16 << 10;

/// The texts, the latest at the back.
#[derive(Default)]
pub struct UpdateTexts(Mutex<VecDeque<UpdateText>>);

struct UpdateText {
    update: ResourceUpdate,
    patches: Option<Value>,
    text: Arc<SharedNotification>,
}

impl UpdateTexts {
    /// Returns the text of an update, with these patches.
    ///
    /// Fast path: with `RareEvents`, a notification takes 14,900 instructions instead of 41,300.
    pub fn find_or_write(
        &self,
        update: &ResourceUpdate,
        patches: Option<Value>,
    ) -> Arc<SharedNotification> {
        let mut texts = lock(&self.0);
        let is_same = |text: &&UpdateText| text.is_of(update, patches.as_ref());
        if let Some(known) = texts.iter().rev().find(is_same) {
            return known.text.clone();
        }
        let note = update_notification(update, patches.as_ref());
        let text = Arc::new(SharedNotification::new(note, key::SUBSCRIPTION_ID));
        if text.plain.len() <= LONGEST {
            if texts.len() >= KEPT {
                texts.pop_front();
            }
            texts.push_back(UpdateText {
                update: update.clone(),
                patches,
                text: text.clone(),
            });
        }
        text
    }
}

impl UpdateText {
    /// Whether it is the text of this update. `settled` is not part of a text.
    fn is_of(&self, update: &ResourceUpdate, patches: Option<&Value>) -> bool {
        let own = &self.update;
        own.revision == update.revision
            && own.after == update.after
            && own.counted_separately == update.counted_separately
            && own.uri == update.uri
            && self.patches.as_ref() == patches
    }
}

fn update_notification(update: &ResourceUpdate, patches: Option<&Value>) -> Notification {
    if update.counted_separately {
        return Notification::resource_changed(&update.uri);
    }
    let mut note = Notification::resource_updated(&update.uri, update.revision);
    note = match update.after {
        Some(after) => note.with_meta("gatewren/after", json!(after)),
        None => note.with_meta("gatewren/resync", json!(true)),
    };
    match patches {
        Some(patches) => note.with_meta("gatewren/patches", patches.clone()),
        None => note,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(uri: &str, after: Option<u64>, revision: u64) -> ResourceUpdate {
        ResourceUpdate {
            uri: uri.into(),
            after,
            revision,
            settled: revision,
            counted_separately: false,
        }
    }

    #[test]
    fn equal_updates_share_a_text_and_different_ones_never_do() {
        let texts = UpdateTexts::default();
        let first = update("gatewren:///public/a", Some(1), 2);
        let patches = Some(json!([{ "op": "remove" }]));
        let settled_later = ResourceUpdate {
            settled: 9,
            ..first.clone()
        };
        let counted_separately = ResourceUpdate {
            counted_separately: true,
            ..first.clone()
        };
        let others = [
            (update("gatewren:///public/b", Some(1), 2), None),
            (update("gatewren:///public/a", None, 2), None),
            (update("gatewren:///public/a", Some(0), 2), None),
            (update("gatewren:///public/a", Some(1), 3), None),
            (counted_separately, None),
            (first.clone(), patches.clone()),
        ];
        let text = texts.find_or_write(&first, None);
        let expected = update_notification(&first, None).write();
        assert_eq!(text.plain, expected);
        for (other, patches) in others {
            let written = texts.find_or_write(&other, patches.clone());
            let expected = update_notification(&other, patches.as_ref()).write();
            assert_eq!(written.plain, expected);
            assert_ne!(written.plain, text.plain);
        }
        assert!(Arc::ptr_eq(
            &texts.find_or_write(&settled_later, None),
            &text
        ));
    }

    #[test]
    fn few_texts_are_kept_and_no_long_one() {
        let texts = UpdateTexts::default();
        for revision in 0..100 {
            let long = Some(json!("x".repeat(LONGEST)));
            let patches = if revision % 2 == 0 { None } else { long };
            texts.find_or_write(&update("u", None, revision), patches);
        }
        let kept = lock(&texts.0);
        assert_eq!(kept.len(), KEPT);
        assert!(kept.iter().all(|text| text.patches.is_none()));
    }
}
