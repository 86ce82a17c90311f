//! D-Bus addresses, such as `unix:path=/run/dbus/system_bus_socket` (D-Bus specification, "Server Addresses").

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

/// Returns the sockets in an address, in the order to try them. Other transports than sockets in
/// the file system are left out: no system bus uses them.
pub(super) fn sockets(address: &str) -> Vec<PathBuf> {
    address.split(';').filter_map(socket).collect()
}

fn socket(address: &str) -> Option<PathBuf> {
    let mut pairs = address.strip_prefix("unix:")?.split(',');
    let path = pairs.find_map(|pair| pair.strip_prefix("path="))?;
    Some(OsString::from_vec(unescaped(path)?).into())
}

/// Decodes `%` and two hexadecimal digits to a byte.
fn unescaped(text: &str) -> Option<Vec<u8>> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_sockets() {
        let named = |address: &str| -> Vec<String> {
            let sockets = sockets(address).into_iter();
            sockets.map(|path| path.display().to_string()).collect()
        };
        assert_eq!(named("unix:path=/run/a"), ["/run/a"]);
        assert_eq!(
            named("unix:guid=0f,path=/a%20b%2c;tcp:host=x,port=1;unix:path=/c"),
            ["/a b,", "/c"]
        );
        for address in ["", "unix:", "unix:abstract=/x", "unix:path=/a%2", "path=/a"] {
            assert!(named(address).is_empty(), "{address}");
        }
    }
}
