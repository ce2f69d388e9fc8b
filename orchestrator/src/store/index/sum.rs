//! A sum over entries, in any order, that tells whether exactly they are there.
//!
//! It is against pages that were lost or came back old, not against people: who can
//! change the index can change the sum. So it is fast instead of cryptographic.

/// Odd constants with many alternating bits.
const FIRST: u64 = 0x9e37_79b9_7f4a_7c15;
const SECOND: u64 = 0xc2b2_ae3d_27d4_eb4f;

/// What an entry adds to the sum of all entries.
pub(super) fn of(key: &[u8], value: &[u8]) -> u128 {
    let mut lanes = (FIRST ^ key.len() as u64, SECOND ^ value.len() as u64);
    for bytes in [key, value] {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            mix(&mut lanes, u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        mix(&mut lanes, u64::from_le_bytes(last));
    }
    mix(&mut lanes, 0);
    (u128::from(lanes.0) << 64) | u128::from(lanes.1)
}

/// Every bit of the word and of both lanes reaches both lanes: the halves of a product are folded together.
fn mix((first, second): &mut (u64, u64), word: u64) {
    let product = u128::from(*first ^ word) * u128::from(FIRST);
    let other = u128::from(*second ^ word.rotate_left(32)) * u128::from(SECOND);
    let fold = |product: u128| (product as u64) ^ ((product >> 64) as u64);
    (*first, *second) = (fold(product).wrapping_add(second.rotate_left(23)), fold(other).wrapping_add(FIRST));
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_changed_bit_and_every_shifted_border_changes_the_sum() {
        let (key, value) = (b"t-1/event".to_vec(), b"0123456789abcdef0".to_vec());
        let mut seen = HashSet::from([of(&key, &value)]);
        for part in 0..2 {
            let length = [key.len(), value.len()][part];
            for bit in 0..length * 8 {
                let mut changed = [key.clone(), value.clone()];
                changed[part][bit / 8] ^= 1 << (bit % 8);
                assert!(seen.insert(of(&changed[0], &changed[1])), "bit {bit} of part {part}");
            }
        }
        let whole = [key, value].concat();
        for border in 0..whole.len() {
            let (key, value) = whole.split_at(border);
            assert!(seen.insert(of(key, value)) || border == 9, "border {border}");
        }
        for zeros in 0..40 {
            assert!(seen.insert(of(b"zeros", &vec![0; zeros])), "{zeros} zeros");
        }
    }

    #[test]
    fn halves_of_many_sums_do_not_repeat() {
        let sums: Vec<u128> = (0..20_000u32).map(|n| of(&n.to_be_bytes(), b"")).collect();
        let low: HashSet<u64> = sums.iter().map(|sum| *sum as u64).collect();
        let high: HashSet<u64> = sums.iter().map(|sum| (*sum >> 64) as u64).collect();
        assert_eq!((low.len(), high.len()), (sums.len(), sums.len()));
    }
}
