//! A picture and a sound, small enough for the source code.

use crate::protocol::{Annotations, Content};

/// A picture of four by four brown pixels.
pub const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAQAAAAECAIAAAAmkwkpAAAAEElEQVR42mPoirKBIwbiOADZIxIB7gIAcQAAAABJRU5ErkJggg==";

/// Two milliseconds of a tone, 8 kHz, 8 bits, mono.
const WAV: &str =
    "UklGRjQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YRAAAACAoLCggGBQYICgsKCAYFBg";

/// The picture as a content block.
pub fn picture() -> Content {
    Content::Image {
        data: PNG.to_owned(),
        mime_type: "image/png".to_owned(),
        annotations: None,
    }
}

/// The picture as a content block with annotations.
pub fn annotated_picture(annotations: Annotations) -> Content {
    Content::Image {
        data: PNG.to_owned(),
        mime_type: "image/png".to_owned(),
        annotations: Some(annotations),
    }
}

/// The sound as a content block.
pub fn sound() -> Content {
    Content::Audio {
        data: WAV.to_owned(),
        mime_type: "audio/wav".to_owned(),
    }
}
