//! Earlier samples of counters, so that a rate is known at once and not after a pause between two samples.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::unpoisoned::lock;

/// The least time between two samples that a rate is computed from: counters grow in steps of up to 10 ms.
pub const LEAST_BETWEEN: Duration = Duration::from_millis(200);

/// The most. A rate over a longer time would say too little about the present.
const MOST_BETWEEN: Duration = Duration::from_secs(10);

/// The newest samples: two at most.
#[derive(Debug)]
pub struct EarlierSamples<T>(Mutex<NewestSamples<T>>);

#[derive(Debug)]
struct NewestSamples<T> {
    newest: Option<TimedSample<T>>,
    before: Option<TimedSample<T>>,
}

#[derive(Debug, Clone)]
struct TimedSample<T> {
    at: Instant,
    sample: T,
}

impl<T> Default for EarlierSamples<T> {
    fn default() -> Self {
        Self(Mutex::new(NewestSamples {
            newest: None,
            before: None,
        }))
    }
}

impl<T: Clone> EarlierSamples<T> {
    /// Keeps a sample of now; one that follows another too soon is not needed.
    pub fn keep(&self, sample: T) {
        self.keep_at(Instant::now(), sample);
    }

    /// Returns the newest sample that is neither too new nor too old, and its age.
    pub fn earlier(&self) -> Option<(T, Duration)> {
        self.earlier_at(Instant::now())
    }

    /// Returns whether all samples are too old.
    pub fn is_outdated(&self) -> bool {
        let samples = lock(&self.0);
        let newest = samples.newest.as_ref();
        newest.is_none_or(|newest| newest.at.elapsed() > MOST_BETWEEN)
    }

    fn keep_at(&self, at: Instant, sample: T) {
        let mut samples = lock(&self.0);
        let newest = samples.newest.as_ref();
        if newest.is_some_and(|newest| at.duration_since(newest.at) < LEAST_BETWEEN) {
            return;
        }
        samples.before = samples.newest.replace(TimedSample { at, sample });
    }

    fn earlier_at(&self, now: Instant) -> Option<(T, Duration)> {
        let samples = lock(&self.0);
        let mut both = [&samples.newest, &samples.before].into_iter().flatten();
        both.find_map(|one| {
            let age = now.duration_since(one.at);
            let fits = (LEAST_BETWEEN..=MOST_BETWEEN).contains(&age);
            fits.then(|| (one.sample.clone(), age))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_sample_that_is_old_enough_counts() {
        let samples = EarlierSamples::default();
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!(samples.earlier_at(at(0)), None);
        samples.keep_at(at(0), 'a');
        assert_eq!(samples.earlier_at(at(199)), None);
        let age = Duration::from_millis;
        assert_eq!(samples.earlier_at(at(200)), Some(('a', age(200))));
        samples.keep_at(at(300), 'b');
        // The newest is too new; it stays the newest although others follow.
        assert_eq!(samples.earlier_at(at(310)), Some(('a', age(310))));
        samples.keep_at(at(400), 'c');
        assert_eq!(samples.earlier_at(at(499)), Some(('a', age(499))));
        assert_eq!(samples.earlier_at(at(500)), Some(('b', age(200))));
        assert_eq!(
            samples.earlier_at(at(300) + MOST_BETWEEN),
            Some(('b', MOST_BETWEEN))
        );
        assert_eq!(samples.earlier_at(at(301) + MOST_BETWEEN), None);
    }

    #[test]
    fn samples_are_outdated_before_the_first_and_not_right_after_one() {
        let samples = EarlierSamples::default();
        assert!(samples.is_outdated());
        samples.keep(1);
        assert!(!samples.is_outdated());
    }
}
