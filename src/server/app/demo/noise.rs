//! Random numbers that are the same at each start: a hash of a name and a position.

/// Returns a number from 0 to below 1.
#[expect(
    clippy::cast_precision_loss,
    reason = "53 bits are as many as the number has"
)]
pub fn noise(name: &str, position: u64) -> f64 {
    (hash(name, position) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Returns a number below `limit`; 0 if that is 0.
pub fn below(limit: u64, name: &str, position: u64) -> u64 {
    hash(name, position).checked_rem(limit).unwrap_or(0)
}

/// FNV-1a of the name, mixed with the position by the last step of `SplitMix64`.
fn hash(name: &str, position: u64) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let mut mixed = name.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    mixed = mixed.wrapping_add(position.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
