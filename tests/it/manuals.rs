//! The manual as a whole: every page is valid, and its references exist.

use std::fs;
use std::path::Path;

use crate::support::manual::Manual;

/// Returns the names of all pages, such as `gatewren.8`.
fn pages() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/man");
    let files = fs::read_dir(folder).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let names: Vec<String> = names.collect();
    assert!(names.len() >= 18, "{names:?}");
    names
}

#[test]
fn every_page_is_written_well() {
    for page in pages() {
        Manual::named(&page).is_written_well();
    }
}

#[test]
fn every_page_of_ours_that_is_referred_to_exists() {
    let pages = pages();
    let mut count = 0;
    for page in &pages {
        let source = Manual::named(page).source;
        for reference in source.lines().filter_map(|line| line.strip_prefix(".Xr ")) {
            let words: Vec<&str> = reference.split_whitespace().collect();
            let is_ours = words[0].starts_with("gatewren") || words[0] == "helper.toml";
            let file = format!("{}.{}", words[0], words[1]);
            assert!(!is_ours || pages.contains(&file), "{page} refers to {file}");
            count += usize::from(is_ours);
        }
    }
    assert!(count > 20, "only {count} references");
}

#[test]
fn the_page_about_the_service_names_what_exists() {
    let page = Manual::named("gatewren.8");
    page.names_what_exists();
    let units = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/systemd");
    for unit in fs::read_dir(units).unwrap() {
        let name = unit.unwrap().file_name().into_string().unwrap();
        assert!(page.source.contains(&name), "{name} is not in the page");
    }
}

#[test]
fn the_unit_of_a_further_front_is_the_one_of_the_first_with_a_name() {
    let units = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/systemd");
    let directives = |name: &str| {
        let text = fs::read_to_string(units.join(name)).unwrap();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let lines = lines.filter(|line| !line.is_empty());
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let further = directives("gatewren@.service").join("\n");
    let replaced = further
        .replace(" (front %i)", "")
        .replace("gatewren@%i.socket", "gatewren.socket")
        .replace(" --instance %i", "");
    assert_eq!(
        replaced.lines().collect::<Vec<_>>(),
        directives("gatewren.service")
    );
}
