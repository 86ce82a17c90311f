//! Earlier samples of counters, so that a rate is known at once and not after a pause between two samples.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use gatewren_portable::lock;

/// The least time between two samples that a rate is computed from: counters grow in steps of up to 10 ms.
pub const LEAST_BETWEEN: Duration = Duration::from_millis(200);

/// The most. A rate over a longer time would say too little about the present.
const MOST_BETWEEN: Duration = Duration::from_secs(10);

/// The newest samples: two at most.
#[derive(Debug)]
pub struct EarlierSamples<T> {
    least: Duration,
    newest: Mutex<NewestSamples<T>>,
}

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
        Self::at_least(LEAST_BETWEEN)
    }
}

impl<T> EarlierSamples<T> {
    /// Samples for rates over at least this time: for counters that grow in larger steps.
    pub fn at_least(least: Duration) -> Self {
        Self {
            least,
            newest: Mutex::new(NewestSamples {
                newest: None,
                before: None,
            }),
        }
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
        let samples = lock(&self.newest);
        let newest = samples.newest.as_ref();
        newest.is_none_or(|newest| newest.at.elapsed() > MOST_BETWEEN)
    }

    fn keep_at(&self, at: Instant, sample: T) {
        let mut samples = lock(&self.newest);
        let newest = samples.newest.as_ref();
        if newest.is_some_and(|newest| at.duration_since(newest.at) < self.least) {
            return;
        }
        samples.before = samples.newest.replace(TimedSample { at, sample });
    }

    fn earlier_at(&self, now: Instant) -> Option<(T, Duration)> {
        let samples = lock(&self.newest);
        let mut both = [&samples.newest, &samples.before].into_iter().flatten();
        both.find_map(|one| {
            let age = now.duration_since(one.at);
            let fits = (self.least..=MOST_BETWEEN).contains(&age);
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
    fn frequent_samples_leave_one_that_is_as_old_as_it_has_to_be() {
        let samples = EarlierSamples::at_least(Duration::from_secs(1));
        let start = Instant::now();
        for ms in (0..5000).step_by(30) {
            let now = start + Duration::from_millis(ms);
            let age = samples.earlier_at(now).map(|(_, age)| age);
            if ms < 1000 {
                assert_eq!(age, None, "{ms}");
            } else {
                let seconds = age.unwrap().as_secs_f64();
                assert!((1.0..2.1).contains(&seconds), "{ms}: {seconds}");
            }
            samples.keep_at(now, ms);
        }
    }

    #[test]
    fn samples_are_outdated_before_the_first_and_not_right_after_one() {
        let samples = EarlierSamples::default();
        assert!(samples.is_outdated());
        samples.keep(1);
        assert!(!samples.is_outdated());
    }
}
