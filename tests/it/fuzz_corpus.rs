//! Replays the fuzz corpus: the property of each target must hold for every stored input.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::{self, Command};

use gatewren_fuzz::TARGETS;

use crate::support::cores::core;

/// Limits the unpacked inputs of all targets: every test run replays them.
const MAX_INPUT_BYTES: u64 = 2 << 20;

/// Limits the archives of all targets: the repository keeps every version of them.
const MAX_ARCHIVE_BYTES: u64 = 512 << 10;

fn project_path(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn archive_name(target: &str) -> String {
    format!("{target}.tar.gz")
}

#[test]
fn every_target_has_a_corpus_and_every_corpus_a_target() {
    let mut bytes = 0;
    let mut archives = BTreeSet::new();
    for entry in fs::read_dir(project_path("tests/fuzz/corpus")).unwrap() {
        let entry = entry.unwrap();
        bytes += entry.metadata().unwrap().len();
        archives.insert(entry.file_name().into_string().unwrap());
    }
    let expected = TARGETS.iter().map(|target| archive_name(target.name));
    assert_eq!(archives, expected.collect());
    assert!(
        bytes <= MAX_ARCHIVE_BYTES,
        "the archives of the corpus have {bytes} bytes; the limit is {MAX_ARCHIVE_BYTES}"
    );
}

#[test]
fn every_kept_input_holds() {
    let _core = core();
    let corpus = UnpackedCorpus::new();
    let mut failed = Vec::new();
    let mut bytes = 0;
    for target in TARGETS {
        let mut inputs = 0;
        for path in corpus.inputs(target.name) {
            let data = fs::read(&path).unwrap();
            bytes += data.len() as u64;
            inputs += 1;
            if catch_unwind(|| (target.property)(&data)).is_err() {
                failed.push(path.strip_prefix(&corpus.dir).unwrap().to_owned());
            }
        }
        assert!(inputs > 0, "the corpus of {} is empty", target.name);
    }
    assert!(
        failed.is_empty(),
        "properties do not hold for these inputs, which tests/fuzz/run --unpack unpacks: {failed:#?}"
    );
    assert!(
        bytes <= MAX_INPUT_BYTES,
        "the inputs of the corpus have {bytes} bytes; the limit is {MAX_INPUT_BYTES}"
    );
}

/// The inputs of every target, in a temporary directory below `target/` that `drop` removes.
struct UnpackedCorpus {
    dir: PathBuf,
}

impl UnpackedCorpus {
    fn new() -> Self {
        let corpus = Self {
            dir: create_unique_dir(&project_path("target/fuzz")),
        };
        for target in TARGETS {
            let archive = project_path("tests/fuzz/corpus").join(archive_name(target.name));
            unpack(&archive, &corpus.dir);
        }
        corpus
    }

    /// The paths of the inputs of one target; none if its archive is empty.
    fn inputs(&self, target: &str) -> Vec<PathBuf> {
        let dir = self.dir.join(target);
        if !dir.exists() {
            return Vec::new();
        }
        let entries = fs::read_dir(dir).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

impl Drop for UnpackedCorpus {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Creates a directory that no other process uses. A killed test may have left one with the same process id.
fn create_unique_dir(parent: &Path) -> PathBuf {
    fs::create_dir_all(parent)
        .unwrap_or_else(|error| panic!("cannot create {}: {error}", parent.display()));
    let mut attempt = 0;
    loop {
        let dir = parent.join(format!("replay-{}-{attempt}", process::id()));
        match fs::create_dir(&dir) {
            Ok(()) => return dir,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => attempt += 1,
            Err(error) => panic!("cannot create {}: {error}", dir.display()),
        }
    }
}

fn unpack(archive: &Path, dir: &Path) {
    let input = File::open(archive)
        .unwrap_or_else(|error| panic!("cannot open {}: {error}", archive.display()));
    let output = Command::new("tar")
        .args(["-xz", "--no-same-owner", "-f", "-", "-C"])
        .arg(dir)
        .stdin(input)
        .output()
        .unwrap_or_else(|error| {
            let archive = archive.display();
            panic!("cannot run tar to unpack {archive}: {error}; install the package tar")
        });
    assert!(
        output.status.success(),
        "tar could not unpack {}: {}: {}",
        archive.display(),
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
}
