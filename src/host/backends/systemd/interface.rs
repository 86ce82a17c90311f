//! systemd's objects and interfaces on the bus, as in org.freedesktop.systemd1(5).

use super::super::bus::BusObject;
use crate::helper_client::UnitName;

/// Its well-known name.
const SERVICE: &str = "org.freedesktop.systemd1";

/// The object that manages all units.
pub const MANAGER: BusObject<'static> = BusObject {
    service: SERVICE,
    path: "/org/freedesktop/systemd1",
    interface: "org.freedesktop.systemd1.Manager",
};

/// The interface that all units have.
pub const UNIT_INTERFACE: &str = "org.freedesktop.systemd1.Unit";

/// Returns an interface of a unit's object.
pub fn unit<'a>(path: &'a str, interface: &'a str) -> BusObject<'a> {
    BusObject {
        service: SERVICE,
        path,
        interface,
    }
}

/// Returns the interface of a unit's kind, such as `org.freedesktop.systemd1.Service`.
pub fn of_kind(name: &UnitName) -> String {
    let kind = name.kind();
    let (first, rest) = kind.split_at_checked(1).unwrap_or((kind, ""));
    format!("{SERVICE}.{}{rest}", first.to_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interface_follows_the_kind() {
        let of = |name: &str| of_kind(&name.parse().unwrap());
        assert_eq!(of("a.service"), "org.freedesktop.systemd1.Service");
        assert_eq!(of("a.b.automount"), "org.freedesktop.systemd1.Automount");
    }
}
