//! How samples are written: 16 bits for a value, so that a month fits into a small file.
//!
//! A row has one entry after the other: the number of its series, how many samples it sums up, which metrics it has,
//! and their values; of a summary first all means and then all maxima. All numbers are little-endian.

use super::sample::{UsageMetric, UsageSample};
use super::summary::{RowEntry, UsageSummary};

/// The digits of a value: ten bits after the leading one.
const MANTISSA_BITS: u32 = 10;

/// Writes an entry with one sample.
pub fn write_sample(row: &mut Vec<u8>, series: u32, sample: &UsageSample) {
    row.extend(series.to_le_bytes());
    row.push(1);
    row.extend(mask(sample).to_le_bytes());
    write_values(row, sample);
}

/// Writes an entry with a summary.
pub fn write_summary(row: &mut Vec<u8>, series: u32, summary: &UsageSummary) {
    let (mean, max) = (summary.mean(), summary.max());
    row.extend(series.to_le_bytes());
    row.push(u8::try_from(summary.samples()).unwrap_or(u8::MAX));
    row.extend(mask(&mean).to_le_bytes());
    write_values(row, &mean);
    write_values(row, &max);
}

fn write_values(row: &mut Vec<u8>, sample: &UsageSample) {
    for metric in UsageMetric::ALL {
        if let Some(value) = sample.get(metric) {
            row.extend(encode(value * metric.scale()).to_le_bytes());
        }
    }
}

fn mask(sample: &UsageSample) -> u16 {
    let bits = UsageMetric::ALL.into_iter().zip(0..);
    bits.filter(|(metric, _)| sample.get(*metric).is_some())
        .fold(0, |mask, (_, bit)| mask | (1_u16 << bit))
}

/// What a row's entries have in addition to their means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowKind {
    /// Nothing: they are single samples.
    Minutes,
    /// Their maxima.
    Quarters,
}

/// Reads the entries of a row; a damaged rest is left out.
pub struct RowReader<'a> {
    rest: &'a [u8],
    kind: RowKind,
}

impl<'a> RowReader<'a> {
    /// Returns a reader of a row.
    pub fn new(row: &'a [u8], kind: RowKind) -> Self {
        Self { rest: row, kind }
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*bytes)
    }

    fn values(&mut self, mask: u16) -> Option<UsageSample> {
        let mut sample = UsageSample::default();
        for (metric, bit) in UsageMetric::ALL.into_iter().zip(0_u16..) {
            if mask & (1 << bit) != 0 {
                let code = u16::from_le_bytes(self.take()?);
                sample.set(metric, Some(decode(code) / metric.scale()));
            }
        }
        Some(sample)
    }

    fn entry(&mut self) -> Option<RowEntry> {
        let series = u32::from_le_bytes(self.take()?);
        let [samples] = self.take()?;
        let mask = u16::from_le_bytes(self.take()?);
        let mean = self.values(mask)?;
        let max = match self.kind {
            RowKind::Minutes => mean,
            RowKind::Quarters => self.values(mask)?,
        };
        Some(RowEntry {
            series,
            samples: samples.into(),
            mean,
            max,
        })
    }
}

impl Iterator for RowReader<'_> {
    type Item = RowEntry;

    fn next(&mut self) -> Option<RowEntry> {
        self.entry()
    }
}

/// Encodes a number of at least 0 with three digits: six bits of exponent, ten of mantissa.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number beyond the range is written as the largest one"
)]
fn encode(value: f64) -> u16 {
    let mut mantissa = value.round().max(0.0) as u64;
    let one = 1_u64 << MANTISSA_BITS;
    let mut exponent = 0_u16;
    let excess = (u64::BITS - mantissa.leading_zeros()).saturating_sub(MANTISSA_BITS + 1);
    if excess > 0 {
        // Rounded: half of the lowest kept digit is added.
        mantissa = mantissa.saturating_add(1 << (excess - 1)) >> excess;
        exponent = u16::try_from(excess).unwrap_or_default();
        if mantissa >= 2 * one {
            mantissa >>= 1;
            exponent += 1;
        }
    }
    if mantissa < one {
        return u16::try_from(mantissa).unwrap_or_default();
    }
    let digits = u16::try_from(mantissa - one).unwrap_or_default();
    ((exponent + 1) << MANTISSA_BITS) | digits
}

fn decode(code: u16) -> f64 {
    let one = 1_u16 << MANTISSA_BITS;
    let (exponent, digits) = (code >> MANTISSA_BITS, code & (one - 1));
    if exponent == 0 {
        return digits.into();
    }
    f64::from(one + digits) * 2_f64.powi(i32::from(exponent) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_keeps_three_digits() {
        for exact in [0.0, 1.0, 1023.0, 1024.0, 2047.0, 2048.0, 4096.0] {
            assert!((decode(encode(exact)) - exact).abs() < 1e-9, "{exact}");
        }
        let mut number = 1.0;
        while number < 1e18 {
            let error = (decode(encode(number)) - number).abs() / number;
            assert!(error <= 0.5, "{number}");
            assert!(number < 10.0 || error < 0.05, "{number} {error}");
            assert!(number < 1000.0 || error < 0.0006, "{number} {error}");
            number *= 1.37;
        }
        assert!(decode(encode(f64::MAX)) > 1e19);
        assert_eq!(encode(-1.0), 0);
        assert!(decode(u16::MAX).is_finite());
    }

    #[test]
    fn an_entry_comes_back_and_a_cut_row_ends_before_the_cut() {
        let mut sample = UsageSample::default();
        sample.set(UsageMetric::CpuPercent, Some(12.5));
        sample.set(UsageMetric::Load, Some(0.25));
        let mut row = Vec::new();
        write_sample(&mut row, 1, &sample);
        write_sample(&mut row, 70_000, &UsageSample::default());
        let entries: Vec<RowEntry> = RowReader::new(&row, RowKind::Minutes).collect();
        let series: Vec<u32> = entries.iter().map(|entry| entry.series).collect();
        assert_eq!(series, [1, 70_000]);
        assert_eq!(entries[0].mean, sample);
        assert!(entries[1].mean.is_empty());
        for cut in 0..row.len() {
            let left = RowReader::new(&row[..cut], RowKind::Minutes).count();
            assert!(left <= 1, "{cut}");
        }
    }
}
