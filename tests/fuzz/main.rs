//! One program for every target: `GATEWREN_FUZZ_TARGET` names the one that this process feeds.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

static PROPERTY: OnceLock<fn(&[u8])> = OnceLock::new();

fuzz_target!(
    init: {
        let name = std::env::var("GATEWREN_FUZZ_TARGET").unwrap_or_default();
        let target = gatewren_fuzz::TARGETS.iter().find(|target| target.name == name);
        let target = target.expect("GATEWREN_FUZZ_TARGET names a target");
        let _ = PROPERTY.set(target.property);
    },
    |data: &[u8]| {
        if let Some(property) = PROPERTY.get() {
            property(data);
        }
    }
);
