//! Every input that the fuzzer's corpus keeps, good or evil or once a finding, holds what its target promises.

use std::collections::BTreeSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::Path;

use gatewren::fuzz::TARGETS;

/// All corpora together, in bytes: they are files in the source tree.
const MOST_BYTES: u64 = 2 << 20;

fn corpora() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus")
}

#[test]
fn every_target_has_a_corpus_and_every_corpus_a_target() {
    let folders = fs::read_dir(corpora()).unwrap();
    let kept: BTreeSet<String> = folders
        .map(|folder| folder.unwrap().file_name().into_string().unwrap())
        .collect();
    let targets = TARGETS.iter().map(|target| target.name.to_owned());
    assert_eq!(kept, targets.collect());
}

#[test]
fn every_kept_input_holds() {
    let mut failed = Vec::new();
    let mut bytes = 0;
    for target in TARGETS {
        let mut inputs = 0;
        for input in fs::read_dir(corpora().join(target.name)).unwrap() {
            let path = input.unwrap().path();
            let data = fs::read(&path).unwrap();
            bytes += data.len() as u64;
            inputs += 1;
            if catch_unwind(|| (target.property)(&data)).is_err() {
                failed.push(path);
            }
        }
        assert!(inputs > 0, "{} has an empty corpus", target.name);
    }
    assert!(failed.is_empty(), "these do not hold: {failed:#?}");
    assert!(bytes <= MOST_BYTES, "{bytes} bytes are too many to keep");
}
